package launcher

const (
	sysSeccomp = 277
	sysSetns   = 268
)
