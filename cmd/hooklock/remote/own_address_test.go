package remote

import (
	"net/netip"
	"testing"
)

func TestAHostThatIsThisMachineHasAllOfItsAddresses(t *testing.T) {
	d := &Desk{url: "http://127.0.0.1:8079"}
	for _, host := range []string{"", "0.0.0.0", "::", "localhost", "127.0.0.1", "127.0.0.2", "::1"} {
		for _, configured := range []bool{false, true} {
			all := d.addressesOf(t.Context(), host, configured)
			if !all[netip.MustParseAddr("127.0.0.1")] || !all[netip.MustParseAddr("::1")] {
				t.Errorf("%q (configured: %v) is reached as %v", host, configured, all)
			}
		}
	}
	if all := d.addressesOf(t.Context(), "192.0.2.77", false); len(all) != 1 {
		t.Errorf("another machine is reached as %v", all)
	}
}
