package admin

import "testing"

func TestATokenHasAShareOfThePlacesForWaits(t *testing.T) {
	s := newShares(4, 2)
	for i, c := range []struct {
		name string
		want bool
	}{{"a", true}, {"a", true}, {"a", false}, {"b", true}, {"", true}, {"", false}} {
		if s.tryEnter(c.name) != c.want {
			t.Fatalf("%d: %q is not as its share, or all places, were set", i, c.name)
		}
	}
	s.leave("a")
	if !s.tryEnter("a") || s.tryEnter("b") {
		t.Error("a place that was left is not free, or one too many is")
	}
}

func TestATokenThatMayNotReadListsNothingByADryRun(t *testing.T) {
	f := newFleet(t, nil)
	f.want(403, "forbidden", "POST", "/v1/executions/skip", writeToken1, `{"filter":{"workflow":"w"},"dryRun":true}`)
}

// taken returns how many places are in use.
func (s *shares) taken() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, some := range s.of {
		n += some
	}
	return n
}
