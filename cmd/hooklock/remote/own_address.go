package remote

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strings"

	"go.yaml.in/yaml/v3"

	"hooklock/cmd/hooklock/cli"
	"hooklock/config"
)

// refuseOwn refuses a URL of the upstream or of a listener of the Hooklock that is asked. Names are
// resolved on this machine.
func (d *Desk) refuseOwn(ctx context.Context, to *url.URL) error {
	running, err := d.Config(ctx, false)
	if err != nil {
		return fmt.Errorf("--to needs the addresses of the upstream and of the listeners, which it must not be: %w",
			err)
	}
	var c struct {
		Upstream struct{ URL string }
		Listen   struct{ Address string }
		Admin    struct{ Listen string }
		Health   struct{ Listen string }
	}
	if err := yaml.Unmarshal([]byte(running.YAML), &c); err != nil {
		return fmt.Errorf("the configuration in force: %w", err)
	}
	host, port, err := net.SplitHostPort(config.WithPort(to))
	if err != nil {
		return cli.Misuse(fmt.Errorf("--to %s: %w", to, err))
	}
	ours := map[string]string{"listen": c.Listen.Address, "admin.listen": c.Admin.Listen,
		"health.listen": c.Health.Listen}
	for setting, text := range map[string]string{"upstream": c.Upstream.URL, "--admin": d.url} {
		if u, err := url.Parse(text); err == nil && u.Hostname() != "" {
			ours[setting] = config.WithPort(u)
		}
	}
	mine := d.addressesOf(ctx, host, false)
	for setting, address := range ours {
		h, p, err := net.SplitHostPort(address)
		if err != nil || p != port {
			continue
		}
		other := d.addressesOf(ctx, h, true)
		if strings.EqualFold(h, host) || mine.hasCommon(other) {
			return cli.Misuse(fmt.Errorf("--to %s is %s (%s): a replay goes to another service; to run the events "+
				"again "+
				"there, leave --to out", cli.Plain(to.String()), address, setting))
		}
	}
	return nil
}

// addresses are IP addresses by which a host is reached from here.
type addresses map[netip.Addr]bool

func (a addresses) hasCommon(b addresses) bool {
	for ip := range a {
		if b[ip] {
			return true
		}
	}
	return false
}

// addressesOf returns the addresses of a host; empty: its name is not known here. A host of a
// configuration that is this machine, or every address of it, is the machine of the admin API.
func (d *Desk) addressesOf(ctx context.Context, host string, configured bool) addresses {
	all := addresses{}
	if host == "" {
		host = "0.0.0.0"
	}
	names := []string{host}
	if configured && isSelf(host) && !IsLocal(d.url) {
		if u, err := url.Parse(d.url); err == nil {
			names = []string{u.Hostname()}
		}
	}
	for _, name := range names {
		found, err := net.DefaultResolver.LookupNetIP(ctx, "ip", name)
		if err != nil {
			continue
		}
		for _, ip := range found {
			ip = ip.Unmap() // ::ffff:0.0.0.0, as which 0.0.0.0 comes here, is not unspecified to netip
			all[ip] = true
			if ip.IsLoopback() || ip.IsUnspecified() {
				all.addMachine()
			}
		}
	}
	return all
}

// isSelf reports whether a host is the machine that reads it.
func isSelf(host string) bool {
	ip, err := netip.ParseAddr(host)
	return strings.EqualFold(host, "localhost") || err == nil && (ip.IsLoopback() || ip.IsUnspecified())
}

// addMachine adds all addresses of this machine: a service that listens on one may listen on all.
func (a addresses) addMachine() {
	a[netip.AddrFrom4([4]byte{127, 0, 0, 1})], a[netip.IPv6Loopback()] = true, true
	all, err := net.InterfaceAddrs()
	if err != nil {
		return
	}
	for _, one := range all {
		if n, is := one.(*net.IPNet); is {
			if ip, ok := netip.AddrFromSlice(n.IP); ok {
				a[ip.Unmap()] = true
			}
		}
	}
}
