package launcher

const sysSeccomp = 277
