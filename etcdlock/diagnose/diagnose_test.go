package diagnose

import (
	"context"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"hooklock/etcdlock"
	"hooklock/etcdlock/etcdtest"
)

// found is the one finding of a check; the check may be named by its beginning.
func found(t *testing.T, findings []Finding, check string) Finding {
	t.Helper()
	for _, f := range findings {
		if strings.HasPrefix(f.Check, check) {
			return f
		}
	}
	t.Fatalf("%s was not checked: %+v", check, findings)
	return Finding{}
}

// wants fails where the check did not end so, or does not say so.
func within(tb testing.TB) context.Context {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	tb.Cleanup(cancel)
	return ctx
}

func wants(t *testing.T, findings []Finding, check string, r Result, says string) {
	t.Helper()
	f := found(t, findings, check)
	if f.Result != r || !strings.Contains(f.Found+" | "+f.Advice, says) {
		t.Errorf("%s: got %s: %s | %s; want %s: %s", check, f.Result, f.Found, f.Advice, r, says)
	}
	if (f.Result == Failed || f.Result == Warning) && f.Advice == "" {
		t.Errorf("%s: no advice: %+v", check, f)
	}
}

func TestAHealthyEtcdIsFoundFitAndNothingIsLeftInIt(t *testing.T) {
	e := etcdtest.Start(t)
	before, err := e.Client.Get(within(t), "", clientv3.WithPrefix())
	if err != nil {
		t.Fatal(err)
	}
	writes := e.Client.Watch(within(t), "", clientv3.WithPrefix(), clientv3.WithRev(before.Header.Revision+1))
	findings := Etcd(within(t), etcdlock.Options{Endpoints: []string{"http://" + e.Endpoint}, Prefix: "/locks"}, 0)
	for _, f := range findings {
		if f.Result != OK && f.Check != "etcd lease" { // which may be slow here
			t.Errorf("%+v", f)
		}
	}
	wants(t, findings, "etcd release", OK, "3.")
	if f := found(t, findings, "etcd lease"); !strings.Contains(f.Found, "session_ttl 15s is renewed every 3.75s") {
		t.Errorf("%+v", f)
	}
	wants(t, findings, "etcd space", OK, "of a quota of 2048.0 MiB")
	wants(t, findings, "etcd outside", OK, "allowed, without a name")
	after, err := e.Client.Get(within(t), "", clientv3.WithPrefix())
	if err != nil || len(after.Kvs) != 0 {
		t.Errorf("left behind: %v %v", after, err)
	}
	leases, err := e.Client.Leases(within(t))
	if err != nil || len(leases.Leases) != 0 {
		t.Errorf("left behind: %v %v", leases, err)
	}
	for revision := before.Header.Revision; revision < after.Header.Revision; {
		news, ok := <-writes
		if !ok {
			t.Fatal("the watch ended")
		}
		for _, event := range news.Events {
			revision = event.Kv.ModRevision
			if !strings.HasPrefix(string(event.Kv.Key), "/locks/v1/doctor/") {
				t.Errorf("wrote %s", event.Kv.Key)
			}
		}
	}
}

func TestEachEndpointIsLookedAtByItself(t *testing.T) {
	e, other := etcdtest.Start(t), etcdtest.Start(t)
	mute, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer mute.Close()
	go func() {
		for {
			c, err := mute.Accept()
			if err != nil {
				return
			}
			_, _ = c.Write([]byte("HTTP/1.1 400 Bad Request\r\n\r\n"))
			_ = c.Close()
		}
	}()
	hung := etcdtest.NewWire(t, e.Endpoint)
	hung.Blackhole(true)
	findings := Etcd(within(t), etcdlock.Options{Endpoints: []string{e.Endpoint, "127.0.0.1:1", hung.Endpoint,
		mute.Addr().String(), "https://" + e.Endpoint, other.Endpoint}}, 0)
	wants(t, findings, "etcd "+e.Endpoint, OK, "answers after")
	wants(t, findings, "etcd 127.0.0.1:1", Failed, "start this member, or correct etcd.endpoints")
	wants(t, findings, "etcd "+hung.Endpoint, Failed, "it accepts connections and does not answer")
	wants(t, findings, "etcd "+mute.Addr().String(), Failed, "is this etcd's client port?")
	wants(t, findings, "etcd https://"+e.Endpoint, Failed, "TLS handshake")
	wants(t, findings, "etcd cluster", Failed, "each would have its own locks")
	if f := found(t, findings, "etcd lease"); f.Result == Skipped {
		t.Errorf("%+v", f)
	}
}

func TestWhenNoEndpointAnswersTheRestIsSkipped(t *testing.T) {
	findings := Etcd(within(t), etcdlock.Options{Endpoints: []string{"127.0.0.1:1"}}, 0)
	wants(t, findings, "etcd 127.0.0.1:1", Failed, "connection refused")
	wants(t, findings, "etcd use", Skipped, "no endpoint answers")
	if len(findings) != 2 {
		t.Errorf("%+v", findings)
	}
}

// A release that is too old is not to be had here (see version_test.go), nor a cluster without a
// leader that still answers: the status is what a real member says, changed where it matters.
func TestWhatAMembersStatusTellsIsJudged(t *testing.T) {
	e := etcdtest.Start(t)
	for _, c := range []struct {
		name   string
		change func(*clientv3.StatusResponse)
		check  string
		result Result
		says   string
	}{
		{"an old release", func(s *clientv3.StatusResponse) {
			s.Version = "3.4.30"
		}, "etcd release", Failed, "a lease that was revoked can be reported alive; reads can be stale"},
		{"what to do about it", func(s *clientv3.StatusResponse) {
			s.Version = "3.6.1"
		}, "etcd release", Failed, "upgrade to 3.7.1, 3.6.14 or 3.5.33"},
		{"no leader", func(s *clientv3.StatusResponse) { s.Leader = 0 }, "etcd leader", Failed, "a majority"},
		{"nearly full", func(s *clientv3.StatusResponse) {
			s.DbSize, s.DbSizeQuota = 90<<20, 100<<20
		}, "etcd space", Warning, "90.0 MiB"},
		{"no quota told", func(s *clientv3.StatusResponse) {
			s.DbSizeQuota = 0
		}, "etcd space", OK, "does not tell its quota"},
		{"a damaged member", func(s *clientv3.StatusResponse) {
			s.Errors = []string{"memberID:1 alarm:CORRUPT "}
		}, "etcd alarms", Failed, "CORRUPT"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := newDiagnosis(etcdlock.Options{Endpoints: []string{e.Endpoint}})
			d.status = func(ctx context.Context, client *clientv3.Client, endpoint string) (*clientv3.StatusResponse,
				error) {
				s, err := readStatus(ctx, client, endpoint)
				if err == nil {
					c.change(s)
				}
				return s, err
			}
			d.run(within(t))
			wants(t, d.findings, c.check, c.result, c.says)
		})
	}
}

func TestEachMemberIsUsedAndALearnerIsNamed(t *testing.T) {
	members := etcdtest.StartCluster(t, 2)
	learner := etcdtest.AddLearner(t, members)
	endpoints := []string{learner.Endpoint, members[0].Endpoint, members[1].Endpoint}
	findings := Etcd(within(t), etcdlock.Options{Endpoints: endpoints}, 64<<10)
	wants(t, findings, "etcd "+learner.Endpoint, Warning, "is a learner")
	wants(t, findings, "etcd "+learner.Endpoint, Warning, "etcdctl member promote "+
		strconv.FormatUint(learner.ID(), 16))
	for _, m := range members {
		wants(t, findings, "etcd transaction "+m.Endpoint, OK, "nested transactions work")
		wants(t, findings, "etcd request size "+m.Endpoint, OK, "64 KiB is taken")
		found(t, findings, "etcd lease "+m.Endpoint)
	}
	wants(t, findings, "etcd cluster", OK, "one cluster")
	wants(t, Etcd(within(t), etcdlock.Options{Endpoints: endpoints[:1]}, 0), "etcd use", Skipped,
		"only learners answer")
}

// What a cluster without a majority refuses has one cause, and it is said once; no check says only
// that its time was up.
func TestAnEtcdWithoutAMajorityIsCalledThat(t *testing.T) {
	members := etcdtest.StartCluster(t, 3)
	members[1].Stop()
	members[2].Stop()
	o := etcdlock.Options{Endpoints: []string{members[0].Endpoint, members[1].Endpoint, members[2].Endpoint}}
	for name, status := range map[string]func(context.Context, *clientv3.Client, string) (*clientv3.StatusResponse,
		error){
		"the member that is left knows it": func(ctx context.Context, c *clientv3.Client,
			endpoint string) (s *clientv3.StatusResponse, err error) {
			etcdtest.Eventually(t, "the member knows no leader", func() bool {
				s, err = readStatus(ctx, c, endpoint)
				return err == nil && s.Leader == 0
			})
			return s, err
		},
		"it does not know it yet": func(ctx context.Context, c *clientv3.Client,
			endpoint string) (*clientv3.StatusResponse, error) {
			s, err := readStatus(ctx, c, endpoint)
			if err == nil {
				s.Leader = 1
			}
			return s, err
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDiagnosis(o)
			d.status = status
			d.run(within(t))
			said := false
			for _, f := range d.findings {
				said = said || strings.Contains(f.Found+f.Advice, "a majority of")
				if strings.Contains(f.Found, "deadline exceeded") ||
					strings.Contains(f.Found, "no leader") && f.Advice == "" {
					t.Errorf("%+v", f)
				}
			}
			if !said {
				t.Errorf("%+v", d.findings)
			}
		})
	}
}

func TestAnEtcdThatRefusesTheLargestAnswerIsFoundOut(t *testing.T) {
	for _, size := range []int{33 << 10, 600 << 10} { // refused by etcd, and by gRPC
		e := etcdtest.StartWithRequestBytes(t, 32<<10)
		wants(t, Etcd(within(t), etcdlock.Options{Endpoints: []string{e.Endpoint}}, size), "etcd request size", Warning,
			"raise --max-request-bytes of each member")
	}
}

func TestAFullStoreIsFoundOut(t *testing.T) {
	e := etcdtest.StartWithQuota(t, 1<<20)
	e.Fill(t)
	findings := Etcd(within(t), etcdlock.Options{Endpoints: []string{e.Endpoint}}, 0)
	wants(t, findings, "etcd alarms", Failed, "NOSPACE")
	wants(t, findings, "etcd lease", Failed, "disarm the NOSPACE alarm")
	wants(t, findings, "etcd permissions", Skipped, "needs a lease")
}

func TestACompactedHistoryIsSeen(t *testing.T) {
	e := etcdtest.Start(t)
	e.Compact(t)
	wants(t, Etcd(within(t), etcdlock.Options{Endpoints: []string{e.Endpoint}}, 0), "etcd compaction", OK,
		"it has been compacted")
}

func TestUsersAndTheirPermissionsAreFoundOut(t *testing.T) {
	e := etcdtest.StartWithUsers(t, "/locks")
	right := etcdlock.Options{Endpoints: []string{e.Endpoint}, Username: etcdtest.User, Password: etcdtest.Password,
		Prefix: "/locks"}
	findings := Etcd(within(t), right, 0)
	for _, f := range findings {
		if f.Result != OK && f.Check != "etcd lease" { // which may be slow here
			t.Errorf("%+v", f)
		}
	}
	wants(t, findings, "etcd outside", OK, "denied, as it should be")
	elsewhere, guess, nobody := right, right, right
	elsewhere.Prefix, guess.Password, nobody.Username, nobody.Password = "/other", "guess", "", ""
	wants(t, Etcd(within(t), elsewhere, 0), "etcd transaction", Failed, "permission denied")
	wants(t, Etcd(within(t), elsewhere, 0), "etcd permissions", Failed,
		"etcdctl role grant-permission ROLE readwrite --prefix=true /other/")
	wants(t, Etcd(within(t), guess, 0), "etcd "+e.Endpoint, Failed, "correct etcd.username and its password")
	wants(t, Etcd(within(t), nobody, 0), "etcd "+e.Endpoint, Failed,
		"set etcd.username and its password, or a client certificate")
}

func TestWhatIsWrongWithTLSIsSaidWithTheSettingToChange(t *testing.T) {
	a, stranger := etcdtest.NewAuthority(t), etcdtest.NewAuthority(t)
	e := etcdtest.StartWithCertificates(t, a, "/locks")
	right := etcdlock.Options{Endpoints: []string{"https://" + e.Endpoint}, TLS: a.Client(a.Issue(etcdtest.User)),
		Prefix: "/locks", SessionTTL: 15 * time.Second}
	for _, f := range Etcd(within(t), right, 0) {
		if f.Result != OK && f.Check != "etcd lease" { // which may be slow here
			t.Errorf("%+v", f)
		}
	}
	noTLS, noCA, noCert, foreignCert, otherName := right, right, right, right, right
	noTLS.TLS, noTLS.Endpoints = nil, []string{"http://" + e.Endpoint}
	noCA.TLS = stranger.Client(a.Issue(etcdtest.User))
	noCert.TLS = a.Client(etcdtest.Certificate{})
	foreignCert.TLS = a.Client(stranger.Issue(etcdtest.User))
	otherName.TLS = a.Client(a.Issue(etcdtest.User))
	otherName.TLS.ServerName = "etcd.example.com"
	for _, c := range []struct {
		name string
		o    etcdlock.Options
		says string
	}{
		{"no TLS", noTLS, "Where it wants TLS, write https://"},
		{"an authority that is not ours", noCA, "set etcd.tls.ca_file"},
		{"no client certificate", noCert, "set etcd.tls.cert_file and key_file"},
		{"a client certificate of another authority", foreignCert, "set etcd.tls.cert_file and key_file"},
		{"another name", otherName, "set etcd.tls.server_name"},
	} {
		t.Run(c.name, func(t *testing.T) {
			wants(t, Etcd(within(t), c.o, 0), "etcd http", Failed, c.says)
		})
	}
	plain := etcdtest.Start(t)
	wants(t, Etcd(within(t), etcdlock.Options{Endpoints: []string{"https://" + plain.Endpoint}, TLS: right.TLS}, 0),
		"etcd https", Failed, "if this endpoint speaks no TLS, write http://")
}
