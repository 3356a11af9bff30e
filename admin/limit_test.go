package admin

import "testing"

func TestATokenHasAShareOfThePlacesForWaits(t *testing.T) {
	s := newShares(4, 2)
	if !s.enter("a") || !s.enter("a") || s.enter("a") || !s.enter("b") || !s.enter("") || s.enter("") {
		t.Fatal("a share, or all places, are not as they were set")
	}
	s.leave("a")
	if !s.enter("a") || s.enter("b") {
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
