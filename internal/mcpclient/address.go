package mcpclient

import (
	"errors"
	"net/netip"
	"net/url"
	"strings"
)

// CheckAddress tells why an address that a server wants opened must not be: it
// is not https (or http on this machine), or it is written so that it shows
// another host than it leads to. nil means that a person may be asked.
func CheckAddress(address string) error {
	if strings.ContainsAny(address, "\\ \t\r\n") || strings.HasPrefix(address, "-") {
		return errors.New("its address holds characters that no address has")
	}
	u, err := url.Parse(address)
	switch {
	case err != nil || u.Host == "" || u.Hostname() == "" || u.Opaque != "":
		return errors.New("its address is no web address")
	case u.User != nil:
		return errors.New("its address has a user name before the host, which makes another host look like the one that is visited")
	case u.Scheme == "https", u.Scheme == "http" && isLoopback(u.Hostname()):
		return nil
	case u.Scheme == "http":
		return errors.New("its address is not encrypted: http is for this machine alone")
	}
	return errors.New("its address is neither https nor http on this machine")
}

func isLoopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsLoopback()
}
