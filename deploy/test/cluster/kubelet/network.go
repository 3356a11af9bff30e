//go:build linux

package kubelet

import (
	"fmt"
	"net/netip"
	"os/exec"
	"strconv"
)

func ip(args ...string) error {
	if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
		return fmt.Errorf("ip %v: %w: %s", args, err, out)
	}
	return nil
}

// Bridge makes a bridge in the network namespace of the caller, with the first address of pods, and
// the loopback usable.
func Bridge(name string, pods netip.Prefix) error {
	for _, args := range [][]string{
		{"link", "set", "lo", "up"},
		{"link", "add", name, "type", "bridge"},
		{"address", "add", netip.PrefixFrom(pods.Addr().Next(), pods.Bits()).String(), "dev", name},
		{"link", "set", name, "up"},
	} {
		if err := ip(args...); err != nil {
			return err
		}
	}
	return nil
}

// connect gives the network namespace of a process an interface on the bridge.
func connect(pid int, bridge string, address netip.Prefix, gateway netip.Addr) error {
	outer := "pod" + strconv.Itoa(pid)
	if err := ip("link", "add", outer, "type", "veth", "peer", "name", "eth0", "netns", strconv.Itoa(pid)); err != nil {
		return err
	}
	for _, args := range [][]string{{"link", "set", outer, "master", bridge}, {"link", "set", outer, "up"}} {
		if err := ip(args...); err != nil {
			return err
		}
	}
	return within(pid, func() error {
		for _, args := range [][]string{
			{"link", "set", "lo", "up"}, {"address", "add", address.String(), "dev", "eth0"},
			{"link", "set", "eth0", "up"},
			{"route", "add", "default", "via", gateway.String()},
		} {
			if err := ip(args...); err != nil {
				return err
			}
		}
		return nil
	})
}
