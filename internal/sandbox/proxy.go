package sandbox

import "os"

const proxyPort = 61080

type proxy struct{}

func serveProxy(f *os.File, hosts []string) *proxy { f.Close(); return nil }
func (p *proxy) refusals() []string                { return nil }
func (p *proxy) close()                            {}
func proxyVariables() []string                     { return nil }
