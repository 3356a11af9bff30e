package tend

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"hooklock/etcdlock/link"
)

const (
	// askLimit bounds one question to a member.
	askLimit = 3 * time.Second
	// defragmentLimit bounds the defragmentation of one member: etcd takes a second for some
	// hundred MiB, and minutes on a slow disk.
	defragmentLimit = 15 * time.Minute
	// healthLimit bounds how long a member may take to catch up after it, or a cluster to follow a
	// new leader.
	healthLimit = 2 * time.Minute
	// behind is how many entries of the log a member may have to apply yet.
	behind = 1000
)

// ErrUnsafe is returned if a member that does not answer for a while could stop the cluster, or if
// the cluster is not well. Nothing further was done.
var ErrUnsafe = errors.New("not safe now")

// Step is one thing that was done.
type Step struct {
	Member   string // its name, or its endpoint if it has none
	Endpoint string // host:port of the member
	// Moved: the leadership went to this member. Else it was defragmented.
	Moved         bool
	Leader        bool          // it was the only member
	Before, After int64         // bytes of its database
	Took          time.Duration // for that long it did not answer
}

// Defragmenter defragments all members of an etcd.
type Defragmenter struct {
	Target *link.Target // how the etcd is reached
	// Alone allows it for an etcd of one member, which does not answer meanwhile: sessions end if
	// that takes longer than their TTL.
	Alone bool
	// Say is called after each step.
	Say func(Step)
}

// Run defragments each member once: the followers first, then it moves the leadership to one of
// them, and the member that had it comes last. While a leader is defragmented, no lease is renewed
// through any member. Before each step all members must be well, and it waits for that. It returns
// ErrUnsafe with the reason, an error of etcd, or that of ctx; what was done until then stays done.
func (d *Defragmenter) Run(ctx context.Context) error {
	c := &cluster{target: d.Target}
	defer c.closeClients()
	if err := c.connectMembers(ctx); err != nil {
		return err
	}
	if len(c.members) == 1 && !d.Alone {
		return fmt.Errorf("%w: etcd has one member, which does not answer while it is defragmented: sessions end if "+
			"that takes longer than etcd.session_ttl", ErrUnsafe)
	}
	for left := slices.Clone(c.members); len(left) > 0; {
		leader, err := c.awaitHealth(ctx)
		if err != nil {
			return err
		}
		at := slices.IndexFunc(left, func(m *member) bool { return m != leader })
		if at < 0 && len(c.members) > 1 {
			to, err := c.moveLeader(ctx, leader)
			if err != nil {
				return err
			}
			d.Say(Step{Member: to.name, Endpoint: to.endpoint, Moved: true})
			continue
		}
		at = max(at, 0)
		step, err := left[at].defragment(ctx)
		if err != nil {
			return err
		}
		step.Leader = left[at] == leader
		d.Say(step)
		left = slices.Delete(left, at, at+1)
	}
	_, err := c.awaitHealth(ctx)
	return err
}

// cluster is the members of an etcd.
type cluster struct {
	target  *link.Target
	clients []*clientv3.Client
	members []*member // in the order of the endpoints that are configured; the others follow
}

// member is one of them.
type member struct {
	id             uint64
	name, endpoint string
	client         *clientv3.Client
}

func (c *cluster) closeClients() {
	for _, client := range c.clients {
		_ = client.Close()
	}
}

// connectMembers connects to all members. One that no endpoint names is reached as it says itself.
func (c *cluster) connectMembers(ctx context.Context) error {
	var list *clientv3.MemberListResponse
	for _, endpoint := range c.target.Endpoints {
		m, err := c.dialMember(ctx, endpoint)
		if err != nil {
			return fmt.Errorf("%w: %w", ErrUnsafe, err)
		}
		if c.memberByID(m.id) != nil {
			continue // two endpoints lead to it
		}
		c.members = append(c.members, m)
		if list == nil {
			asked, cancel := context.WithTimeout(ctx, askLimit)
			list, err = m.client.MemberList(asked)
			cancel()
			if err != nil {
				return fmt.Errorf("list the members: %w", link.Explain(err))
			}
		}
	}
	for _, listed := range list.Members {
		m := c.memberByID(listed.ID)
		switch {
		case listed.IsLearner:
			return fmt.Errorf("%w: %s is a learner, which may yet fetch the whole database: promote it or remove it "+
				"first", ErrUnsafe, memberName(listed))
		case m == nil && len(listed.ClientURLs) == 0:
			return fmt.Errorf("%w: %s has not joined", ErrUnsafe, memberName(listed))
		case m == nil:
			var err error
			if m, err = c.dialMember(ctx, listed.ClientURLs[0]); err != nil {
				return fmt.Errorf("%w: %s, which etcd.endpoints does not name: %w", ErrUnsafe, memberName(listed), err)
			}
			c.members = append(c.members, m)
		}
		m.name = memberName(listed)
	}
	return nil
}

func memberName(m *pb.Member) string {
	if m.Name != "" {
		return m.Name
	}
	return strings.Join(m.PeerURLs, ", ")
}

func (c *cluster) memberByID(id uint64) *member {
	for _, m := range c.members {
		if m.id == id {
			return m
		}
	}
	return nil
}

// dialMember connects to the member at endpoint, and asks for its ID.
func (c *cluster) dialMember(ctx context.Context, endpoint string) (*member, error) {
	client, err := link.Dial(c.target, endpoint, askLimit)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", endpoint, link.Explain(err))
	}
	c.clients = append(c.clients, client)
	m := &member{name: endpoint, endpoint: endpoint, client: client}
	s, err := m.readStatus(ctx)
	if err == nil {
		m.id = s.Header.MemberId
	}
	return m, err
}

func (m *member) readStatus(ctx context.Context) (*clientv3.StatusResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	s, err := m.client.Status(ctx, m.endpoint)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return nil, fmt.Errorf("%s does not answer within %v", m.endpoint, askLimit)
	case err != nil:
		return nil, fmt.Errorf("%s does not answer: %w", m.endpoint, link.Explain(err))
	}
	return s, nil
}

// awaitHealth waits until every member answers, follows one leader and has applied what that has,
// and returns the leader.
func (c *cluster) awaitHealth(ctx context.Context) (leader *member, err error) {
	ctx, cancel := context.WithTimeout(ctx, healthLimit)
	defer cancel()
	for pause := link.NewBackoff(); ; {
		var again bool
		if leader, again, err = c.checkHealth(ctx); err == nil {
			return leader, nil
		}
		if !again || pause.Wait(ctx) != nil {
			return nil, fmt.Errorf("%w: %w", ErrUnsafe, err)
		}
	}
}

// checkHealth is one look of awaitHealth. again: another look may find it well.
func (c *cluster) checkHealth(ctx context.Context) (leader *member, again bool, err error) {
	var newest uint64
	statuses := make([]*clientv3.StatusResponse, len(c.members))
	for i, m := range c.members {
		s, err := m.readStatus(ctx)
		switch {
		case err != nil:
			return nil, true, err
		case s.Leader == 0:
			return nil, true, fmt.Errorf("%s has no leader: a majority of the members is away", m.name)
		case slices.ContainsFunc(s.Errors, func(e string) bool { return strings.Contains(e, "CORRUPT") }):
			return nil, false, fmt.Errorf("%s reports the alarm CORRUPT: replace the damaged member first", m.name)
		}
		statuses[i], newest = s, max(newest, s.RaftIndex)
	}
	leader = c.memberByID(statuses[0].Leader)
	for i, s := range statuses {
		switch {
		case leader == nil || s.Leader != leader.id:
			return nil, true, errors.New("the members follow different leaders")
		case s.RaftAppliedIndex+behind < newest:
			return nil, true, fmt.Errorf("%s is %d entries behind", c.members[i].name, newest-s.RaftAppliedIndex)
		}
	}
	return leader, false, nil
}

// moveLeader gives the leadership to another member.
func (c *cluster) moveLeader(ctx context.Context, leader *member) (*member, error) {
	to := c.members[0]
	if to == leader {
		to = c.members[1]
	}
	asked, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	if _, err := leader.client.MoveLeader(asked, to.id); err != nil {
		return nil, fmt.Errorf("move the leadership from %s to %s: %w", leader.name, to.name, link.Explain(err))
	}
	return to, nil
}

func (m *member) defragment(ctx context.Context) (step Step, err error) {
	step = Step{Member: m.name, Endpoint: m.endpoint}
	before, err := m.readStatus(ctx)
	if err != nil {
		return step, err
	}
	limited, cancel := context.WithTimeout(ctx, defragmentLimit)
	defer cancel()
	began := time.Now()
	if _, err = m.client.Defragment(limited, m.endpoint); err != nil {
		return step, fmt.Errorf("defragment %s: %w", m.name, link.Explain(err))
	}
	step.Before, step.Took = before.DbSize, time.Since(began)
	after, err := m.readStatus(ctx)
	if err == nil {
		step.After = after.DbSize
	}
	return step, err
}
