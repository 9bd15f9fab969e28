package launcher

const (
	sysSeccomp = 317
	sysSetns   = 308
)
