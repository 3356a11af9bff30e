package serve

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"hooklock/cmd/hooklock/cli"
	"hooklock/etcdlock/link"
	"hooklock/idem"
)

// spaceEvery is the time between two looks at how full the members of an etcd cluster are.
const spaceEvery = time.Minute

// spaceFresh is how old the last look may be for line: each opens a connection to each member.
const spaceFresh = 3 * time.Second

// clusterSpace knows how full the members of an etcd cluster are, and how fast they grow. It is
// safe for concurrent use.
type clusterSpace struct {
	look    func(context.Context) []idem.StoreSpace // returns the members that answer
	looking sync.Mutex                              // held during a look: one at a time

	mu      sync.Mutex
	members []idem.StoreSpace       // that answered the last look
	lookAt  time.Time               // when that was
	growth  map[string]*link.Growth // by the endpoint
}

// lookUntilEnd looks until ctx ends.
func (c *clusterSpace) lookUntilEnd(ctx context.Context) {
	for more := true; more; more = cli.Pause(ctx, spaceEvery) {
		c.lookIfOlder(ctx, 0)
	}
}

// lookIfOlder looks, unless the last look is younger than fresh.
func (c *clusterSpace) lookIfOlder(ctx context.Context, fresh time.Duration) {
	c.looking.Lock()
	defer c.looking.Unlock()
	c.mu.Lock()
	lookAt := c.lookAt
	c.mu.Unlock()
	if time.Since(lookAt) >= fresh {
		c.noteMembers(time.Now(), c.look(ctx))
	}
}

// spaceLine says for operators how full etcd is now; "" if no member answers.
func (c *clusterSpace) spaceLine(ctx context.Context) string {
	c.lookIfOlder(context.WithoutCancel(ctx), spaceFresh) // others may wait for it
	if text := c.spaceText(); text != "" {
		return "etcd: " + text
	}
	return ""
}

func (c *clusterSpace) noteMembers(now time.Time, members []idem.StoreSpace) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.members, c.lookAt = members, now; c.growth == nil {
		c.growth = map[string]*link.Growth{}
	}
	for i := range members {
		m := &members[i]
		if c.growth[m.Member] == nil {
			c.growth[m.Member] = &link.Growth{}
		}
		c.growth[m.Member].Note(now, m.InUse)
	}
}

// spaceText says for operators how full the fullest member is, and when it is full; "" if none has
// answered.
func (c *clusterSpace) spaceText() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.members) == 0 {
		return ""
	}
	part := func(s *idem.StoreSpace) float64 { return float64(s.Size) / float64(max(s.Quota, 1)) }
	fullest := slices.MaxFunc(c.members, func(a, b idem.StoreSpace) int {
		return cmp.Or(cmp.Compare(part(&a), part(&b)), cmp.Compare(a.Size, b.Size))
	})
	text := fullest.Member + " has "
	if n := len(c.members); n > 1 {
		text = fmt.Sprintf("%s, the fullest of %d, has ", fullest.Member, n)
	}
	s := link.Space{Size: fullest.Size, InUse: fullest.InUse, Quota: fullest.Quota, Full: fullest.Full}
	text += s.Text()
	if s.Full {
		text += "; it is full, and nothing new is taken: " + link.MakeRoom
	}
	if growth, known := c.growth[fullest.Member].AnHour(); known {
		text += s.GrowthText(growth)
	}
	return text
}
