package diagnose

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"hooklock/etcdlock"
	"hooklock/etcdlock/link"
	"hooklock/etcdlock/protocol"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"
)

const (
	// diagnoseTimeout bounds one step of a diagnosis. It is longer than the Store would wait, so
	// that a slow member is told from a dead one.
	diagnoseTimeout = 3 * time.Second
	// diagnoseLease is how long the keys of a diagnosis live if they cannot be removed.
	diagnoseLease = 10 * time.Second
	// nearlyFull is the part of the quota above which the database needs attention.
	nearlyFull = 0.8
)

// Etcd checks the etcd that o names, as a Store would use it, and returns one finding for each
// check. It writes only below <prefix>/v1/doctor/, on a lease of a few seconds, and removes it
// again. It takes no session and no lock, so it may run beside anything. o must name Endpoints.
// largest is the largest value that is to be stored, in bytes; 0 = it is not tried.
func Etcd(ctx context.Context, o etcdlock.Options, largest int) []Finding {
	d := newDiagnosis(o)
	d.largest = largest
	d.run(ctx)
	return d.findings
}

func newDiagnosis(o etcdlock.Options) *diagnosis {
	o = o.WithDefaults()
	return &diagnosis{options: &o, layout: protocol.NewLayout(o.Prefix), status: readStatus}
}

// diagnosis is one run of Etcd.
type diagnosis struct {
	options  *etcdlock.Options
	layout   protocol.Layout
	largest  int
	status   func(ctx context.Context, c *clientv3.Client, endpoint string) (*clientv3.StatusResponse, error)
	findings []Finding
	answered []answered // learners among them
	voting   []answered // those that take writes and consistent reads
}

// answered is a member that answers.
type answered struct {
	endpoint string
	client   *clientv3.Client
	status   *clientv3.StatusResponse
}

func readStatus(ctx context.Context, c *clientv3.Client, endpoint string) (*clientv3.StatusResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, diagnoseTimeout)
	defer cancel()
	return c.Status(ctx, endpoint)
}

func (d *diagnosis) addFinding(check string, r Result, found, advice string) {
	d.findings = append(d.findings, Finding{Check: check, Result: r, Found: found, Advice: advice})
}

// addFailure reports an error of etcd, with the advice that belongs to it, or otherwise.
func (d *diagnosis) addFailure(check, doing string, err error, otherwise string) {
	advice := link.AdviceFor(err)
	switch {
	case advice != "":
	case isSilent(err):
		advice = "a majority of etcd's members may be away, or their disks hang: start the members that are away, " +
			"and look at etcd's log"
	default:
		advice = otherwise
	}
	d.addFinding(check, Failed, doing+": "+reasonText(err), advice)
}

// reasonText returns the text of an error of etcd; one that says only that the time was up says so
// in words.
func reasonText(err error) string {
	if isSilent(err) {
		return "no answer within " + diagnoseTimeout.String()
	}
	return err.Error()
}

// isSilent reports whether err says that no answer came in time.
func isSilent(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || grpcstatus.Code(err) == codes.DeadlineExceeded
}

func (d *diagnosis) run(ctx context.Context) {
	for _, endpoint := range d.options.Endpoints {
		d.checkEndpoint(ctx, endpoint)
	}
	defer func() {
		for _, a := range d.answered {
			_ = a.client.Close()
		}
	}()
	if len(d.answered) == 0 {
		d.addFinding("etcd use", Skipped, "no endpoint answers, so nothing more can be said about etcd", "")
		return
	}
	d.checkLeader()
	d.checkAlarms()
	d.checkSpace()
	followers := d.voting
	d.voting = slices.DeleteFunc(slices.Clone(followers), func(a answered) bool { return a.status.Leader == 0 })
	if len(followers) > 0 && len(d.voting) == 0 {
		d.addFinding("etcd use", Skipped, "without a leader etcd answers no write, and no read that has to be current",
			"")
		return
	}
	d.checkMembers(ctx)
	if len(d.voting) == 0 {
		d.addFinding("etcd use", Skipped, "only learners answer, and they take no writes",
			"name voting members in etcd.endpoints, or promote a learner")
		return
	}
	d.checkUse(ctx)
}

// checkEndpoint checks one member by itself.
func (d *diagnosis) checkEndpoint(ctx context.Context, endpoint string) {
	check := "etcd " + endpoint
	began := time.Now()
	if advice, err := probeEndpoint(ctx, endpoint, d.options.TLS); err != nil {
		d.addFinding(check, Failed, err.Error(), advice)
		return
	}
	c, err := link.Dial(d.options.Target(), endpoint, diagnoseTimeout)
	if err != nil {
		d.addFailure(check, "log in", err, "look at this member's log")
		return
	}
	s, err := d.status(ctx, c, endpoint)
	if err != nil {
		_ = c.Close()
		d.addFailure(check, "ask for its status", err, "look at this member's log")
		return
	}
	d.answered = append(d.answered, answered{endpoint, c, s})
	if s.IsLearner {
		d.addFinding(check, Warning, "is a learner, which takes no writes and no consistent reads: each attempt "+
			"there is lost",
			"promote it (etcdctl member promote "+strconv.FormatUint(s.Header.MemberId, 16)+
				"), or take it out of etcd.endpoints")
	} else {
		d.voting = append(d.voting, d.answered[len(d.answered)-1])
		d.addFinding(check, OK, fmt.Sprintf("answers after %s", formatMilliseconds(time.Since(began))), "")
	}
	if err := link.CheckRelease(s.Version); err != nil {
		d.addFinding("etcd release "+endpoint, Failed, err.Error(), link.NewEnough)
	} else {
		d.addFinding("etcd release "+endpoint, OK, s.Version, "")
	}
}

// checkLeader checks whether every member knows a leader.
func (d *diagnosis) checkLeader() {
	for _, a := range d.answered {
		if a.status.Leader == 0 {
			d.addFinding("etcd leader", Failed, a.endpoint+" knows no leader",
				"start the members that are away: a majority of them must be there")
			return
		}
	}
	d.addFinding("etcd leader", OK, "known: member "+strconv.FormatUint(d.answered[0].status.Leader, 16), "")
}

// checkAlarms reads the alarms from the status of the members, which every user may see.
func (d *diagnosis) checkAlarms() {
	var raised []string
	for _, a := range d.answered {
		for _, e := range a.status.Errors {
			if _, name, is := strings.Cut(e, "alarm:"); is && !slices.Contains(raised, strings.TrimSpace(name)) {
				raised = append(raised, strings.TrimSpace(name))
			}
		}
	}
	if len(raised) == 0 {
		d.addFinding("etcd alarms", OK, "none", "")
		return
	}
	d.addFinding("etcd alarms", Failed, strings.Join(raised, ", ")+": etcd takes no new locks and records",
		"NOSPACE: compact, defragment or raise the quota, then etcdctl alarm disarm. CORRUPT: replace the member, "+
			"then disarm")
}

// checkSpace compares the fullest member with its quota.
func (d *diagnosis) checkSpace() {
	full := slices.MaxFunc(d.answered, func(a, b answered) int { return int(a.status.DbSize - b.status.DbSize) })
	s := full.status
	found := fmt.Sprintf("the database has %s, %s of it in use", formatSize(s.DbSize), formatSize(s.DbSizeInUse))
	switch {
	case s.DbSizeQuota == 0:
		d.addFinding("etcd space", OK, found+"; this release does not tell its quota", "")
	case float64(s.DbSize) > nearlyFull*float64(s.DbSizeQuota):
		d.addFinding("etcd space", Warning, found+", of a quota of "+formatSize(s.DbSizeQuota),
			"defragment where little is in use; else raise the quota (--quota-backend-bytes), or shorten "+
				"idempotency.retention")
	default:
		d.addFinding("etcd space", OK, found+", of a quota of "+formatSize(s.DbSizeQuota), "")
	}
}

// checkMembers counts the members that are not configured. A hung member costs nothing if another
// one is configured.
func (d *diagnosis) checkMembers(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, diagnoseTimeout)
	defer cancel()
	list, err := d.answered[0].client.MemberList(ctx)
	switch n := len(d.options.Endpoints); {
	case err != nil:
		d.addFinding("etcd members", Skipped, "the list of members: "+reasonText(err), "")
	case n < len(list.Members):
		d.addFinding("etcd members", Warning,
			fmt.Sprintf("the cluster has %d, etcd.endpoints names %d", len(list.Members), n),
			"name them all, so that Hooklock can avoid one that hangs; ignore this if the endpoint balances over "+
				"several")
	default:
		d.addFinding("etcd members", OK, strconv.Itoa(len(list.Members)), "")
	}
}

func formatMilliseconds(d time.Duration) string {
	return strconv.FormatFloat(float64(d.Microseconds())/1000, 'f', 1, 64) + " ms"
}

func formatSize(n int64) string {
	if n < 1<<20 {
		return strconv.FormatInt(n>>10, 10) + " KiB"
	}
	return strconv.FormatFloat(float64(n)/(1<<20), 'f', 1, 64) + " MiB"
}
