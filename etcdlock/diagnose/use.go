package diagnose

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	"hooklock/etcdlock/link"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// checkUse does once each thing that a Store does all the time: through each member what a Store
// needs of it, and the rest through one.
func (d *diagnosis) checkUse(ctx context.Context) {
	for i, a := range d.voting {
		of := ""
		if len(d.voting) > 1 {
			of = " " + a.endpoint
		}
		d.checkMemberUse(ctx, a.client, of, i == 0)
	}
	d.checkOutsidePrefix(ctx, d.voting[0].client)
	d.checkCompaction(ctx, d.voting[0].client)
}

// checkMemberUse does so through one member. of follows the names of its checks. The first member
// is asked for what is the same at all.
func (d *diagnosis) checkMemberUse(ctx context.Context, c *clientv3.Client, of string, first bool) {
	granted := d.checkLease(ctx, c, "etcd lease"+of)
	if granted == nil {
		d.addFinding("etcd transaction"+of, Skipped, "needs a lease", "")
		if first {
			d.addFinding("etcd permissions", Skipped, "needs a lease", "")
		}
		return
	}
	defer func() { // also when the caller is interrupted; if it fails, the keys go with the lease
		_, _ = runTimed(context.WithoutCancel(ctx), func(ctx context.Context) error {
			_, err := c.Revoke(ctx, granted.ID)
			return err
		})
	}()
	key := d.layout.Root + "doctor/" + strings.ToLower(rand.Text())
	passed := d.checkTransaction(ctx, c, key, granted.ID, "etcd transaction"+of)
	d.checkRequestSize(ctx, c, key, granted.ID, "etcd request size"+of)
	if !first {
		return
	}
	if passed {
		d.checkSameCluster(ctx, key)
	}
	d.checkPermissions(ctx, c, key, granted.ID)
}

// checkRequestSize puts a value as large as the largest that a Store may put. Each member has a
// limit of its own.
func (d *diagnosis) checkRequestSize(ctx context.Context, c *clientv3.Client, key string, lease clientv3.LeaseID,
	check string) {
	if d.largest == 0 {
		return
	}
	_, err := runTimed(ctx, func(ctx context.Context) error {
		_, err := c.Put(ctx, key+"-size", strings.Repeat("x", d.largest), clientv3.WithLease(lease))
		return err
	})
	of := fmt.Sprintf("a request with %s", formatSize(int64(d.largest)))
	switch {
	case link.TooLarge(err):
		d.addFinding(check, Warning, of+" is refused: answers of that size are recorded as their status alone, and "+
			"requests are not parked",
			"raise --max-request-bytes of each member (1.5 MiB by default), or lower idempotency.replay_body and "+
				"park_store.inline")
	case err != nil:
		d.addFailure(check, of, err, "look at etcd's log")
	default:
		d.addFinding(check, OK, of+" is taken, the largest of this configuration", "")
	}
}

// runTimed runs f with a limit of its own, and returns how long it took.
func runTimed(ctx context.Context, f func(context.Context) error) (took time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, diagnoseTimeout)
	defer cancel()
	began := time.Now()
	err = f(ctx)
	return time.Since(began), err
}

// checkLease measures the round trip of a lease. The lease that it returns is for the checks that
// follow; nil = there is none.
func (d *diagnosis) checkLease(ctx context.Context, c *clientv3.Client,
	check string) (granted *clientv3.LeaseGrantResponse) {
	asked := min(d.options.SessionTTL, diagnoseLease)
	took := map[string]time.Duration{}
	for _, try := range []struct {
		doing string
		f     func(context.Context) error
	}{
		{"grant", func(ctx context.Context) (err error) {
			granted, err = c.Grant(ctx, link.LeaseSeconds(asked))
			return err
		}},
		{"renew", func(ctx context.Context) error { return link.RenewLease(ctx, c, granted.ID) }},
		{"revoke", func(ctx context.Context) error { return revokeAnother(ctx, c) }},
	} {
		var err error
		if took[try.doing], err = runTimed(ctx, try.f); err != nil {
			d.addFailure(check, try.doing, err, "look at etcd's log")
			return granted
		}
	}
	renewal, most := took["renew"], link.LimitsFor(d.options.RequestTimeout).Attempt
	every := d.options.SessionTTL / 4
	found := fmt.Sprintf("granted in %s, renewed in %s, granted and revoked in %s; session_ttl %v is renewed every %v",
		formatMilliseconds(took["grant"]), formatMilliseconds(renewal), formatMilliseconds(took["revoke"]),
		d.options.SessionTTL, every)
	switch {
	case granted.TTL > link.LeaseSeconds(asked):
		d.addFinding(check, Warning, fmt.Sprintf("etcd made %d s of a lease of %v; %s", granted.TTL, asked, found),
			fmt.Sprintf("etcd's election timeout is too long for this session_ttl: locks of a dead process stay "+
				"closed for %d s", granted.TTL))
	case renewal > most:
		d.addFinding(check, Failed, found,
			fmt.Sprintf("a renewal is given up after %v, a third of etcd.request_timeout: "+
				"find out why etcd is slow (disk, network, CPU), or raise that", most))
	case renewal > most/2:
		d.addFinding(check, Warning, found,
			fmt.Sprintf("a renewal is given up after %v; with a password each costs etcd "+
				"one hash, a client certificate none", most))
	default:
		d.addFinding(check, OK, found, "")
	}
	return granted
}

// revokeAnother grants a lease and revokes it, because the other one is still needed.
func revokeAnother(ctx context.Context, c *clientv3.Client) error {
	granted, err := c.Grant(ctx, link.LeaseSeconds(diagnoseLease))
	if err == nil {
		_, err = c.Revoke(ctx, granted.ID)
	}
	return err
}

// ifCreatedAt puts key if revision is its create revision, 0 = if it is absent.
func ifCreatedAt(revision int64, key string, lease clientv3.LeaseID) clientv3.Op {
	return clientv3.OpTxn([]clientv3.Cmp{clientv3.Compare(clientv3.CreateRevision(key), "=", revision)},
		[]clientv3.Op{clientv3.OpPut(key, "doctor", clientv3.WithLease(lease))}, []clientv3.Op{clientv3.OpGet(key)})
}

// checkTransaction sends two nested transactions in one request: the first must pass, and put the
// key, and the second must be refused.
func (d *diagnosis) checkTransaction(ctx context.Context, c *clientv3.Client, key string, lease clientv3.LeaseID,
	check string) (passed bool) {
	another := key + "-2"
	var response *clientv3.TxnResponse
	took, err := runTimed(ctx, func(ctx context.Context) (err error) {
		response, err = c.Txn(ctx).Then(ifCreatedAt(0, key, lease), ifCreatedAt(1, another, lease)).Commit()
		return err
	})
	switch {
	case err != nil:
		d.addFailure(check, "a nested transaction", err,
			"etcd must be reached without anything between that reads or changes requests")
	case !response.Responses[0].GetResponseTxn().GetSucceeded() ||
		response.Responses[1].GetResponseTxn().GetSucceeded():
		d.addFinding(check, Failed, "a nested transaction did what it must not",
			"is this etcd? Other stores with its protocol do not nest transactions")
	default:
		d.addFinding(check, OK, "nested transactions work, "+formatMilliseconds(took), "")
		return true
	}
	return false
}

// checkSameCluster reads the key, which was put through the first endpoint, through the others.
// Cluster IDs prove less: clusters that were set up alike have the same one.
func (d *diagnosis) checkSameCluster(ctx context.Context, key string) {
	const check = "etcd cluster"
	first := d.voting[0]
	if len(d.voting) == 1 {
		return
	}
	for _, a := range d.voting[1:] {
		var got *clientv3.GetResponse
		_, err := runTimed(ctx, func(ctx context.Context) (err error) { got, err = a.client.Get(ctx, key); return err })
		switch {
		case err != nil:
			d.addFailure(check, "read through "+a.endpoint, err, "look at this member's log")
			return
		case len(got.Kvs) == 0:
			d.addFinding(check, Failed, "what is put through "+first.endpoint+" is not at "+a.endpoint+
				": each would have its own locks",
				"name the endpoints of one cluster in etcd.endpoints")
			return
		}
	}
	d.addFinding(check, OK, "the endpoints are one cluster", "")
}

// checkPermissions writes, watches, reads and deletes one key, and reads as far as the prefix goes.
func (d *diagnosis) checkPermissions(ctx context.Context, c *clientv3.Client, key string, lease clientv3.LeaseID) {
	const check = "etcd permissions"
	for _, try := range []struct {
		doing string
		f     func(context.Context) error
	}{
		{"read below " + d.layout.Root, func(ctx context.Context) error {
			_, err := c.Get(ctx, d.layout.Root, clientv3.WithPrefix(), clientv3.WithLimit(1), clientv3.WithKeysOnly())
			return err
		}},
		{"put " + key, func(ctx context.Context) error {
			_, err := c.Put(ctx, key, "doctor", clientv3.WithLease(lease))
			return err
		}},
		{"watch " + key, func(ctx context.Context) error { return watchOnce(ctx, c, key, lease) }},
		{"delete " + key, func(ctx context.Context) error { _, err := c.Delete(ctx, key); return err }},
	} {
		if _, err := runTimed(ctx, try.f); err != nil {
			if link.Says(err, rpctypes.ErrPermissionDenied) {
				d.addFinding(check, Failed, try.doing+": "+err.Error(),
					"etcdctl role grant-permission ROLE readwrite --prefix=true "+d.options.Prefix+"/")
			} else {
				d.addFailure(check, try.doing, err, "look at etcd's log")
			}
			return
		}
	}
	d.addFinding(check, OK, "put, get, delete and watch work below "+d.options.Prefix+"/", "")
}

// watchOnce waits for the event of a put that it makes.
func watchOnce(ctx context.Context, c *clientv3.Client, key string, lease clientv3.LeaseID) error {
	ctx, cancel := context.WithCancel(clientv3.WithRequireLeader(ctx))
	defer cancel()
	put, err := c.Put(ctx, key, "seen", clientv3.WithLease(lease))
	if err != nil {
		return err
	}
	select {
	case news, open := <-c.Watch(ctx, key, clientv3.WithRev(put.Header.Revision)):
		switch {
		case news.Err() != nil:
			return news.Err()
		case !open || len(news.Events) == 0:
			return errors.New("it ended without news")
		}
		return nil
	case <-ctx.Done():
		return fmt.Errorf("no news of a change: %w", ctx.Err())
	}
}

// checkOutsidePrefix reads, and writes nothing, outside of the prefix, which this user should not
// be allowed to.
func (d *diagnosis) checkOutsidePrefix(ctx context.Context, c *clientv3.Client) {
	const check = "etcd outside the prefix"
	_, err := runTimed(ctx, func(ctx context.Context) error {
		_, err := c.Get(ctx, strings.TrimSuffix(d.options.Prefix, "/")+"-outside", clientv3.WithKeysOnly())
		return err
	})
	switch {
	case link.Says(err, rpctypes.ErrPermissionDenied):
		d.addFinding(check, OK, "denied, as it should be", "")
	case err != nil:
		d.addFinding(check, Skipped, reasonText(err), "")
	case d.options.Username == "" && (d.options.TLS == nil ||
		d.options.TLS.GetClientCertificate == nil && len(d.options.TLS.Certificates) == 0):
		d.addFinding(check, OK, "allowed, without a name: any client that reaches this etcd can change locks and "+
			"records "+
			"unless etcd asks for users", "")
	default:
		d.addFinding(check, OK, "allowed: this user may read more than it needs, or etcd asks for no users; a role "+
			"for the "+
			"prefix alone is enough", "")
	}
}

// checkCompaction warns if history was never compacted. Whether compaction is automatic cannot be
// seen.
func (d *diagnosis) checkCompaction(ctx context.Context, c *clientv3.Client) {
	const (
		check = "etcd compaction"
		many  = 100_000 // revisions; some hundred MiB
	)
	var got *clientv3.GetResponse
	_, err := runTimed(ctx, func(ctx context.Context) (err error) {
		got, err = c.Get(ctx, d.layout.Root+"doctor/", clientv3.WithRev(1), clientv3.WithCountOnly())
		return err
	})
	const advice = "start etcd with --auto-compaction-mode=periodic --auto-compaction-retention=5m, or its history " +
		"grows until it is full"
	switch {
	case errors.Is(err, rpctypes.ErrCompacted):
		d.addFinding(check, OK, "it has been compacted; whether that happens by itself cannot be seen from here", "")
	case err != nil:
		d.addFinding(check, Skipped, reasonText(err), "")
	case got.Header.Revision > many:
		d.addFinding(check, Warning, fmt.Sprintf("never compacted in %d revisions", got.Header.Revision), advice)
	default:
		d.addFinding(check, OK, "not yet compacted; whether that happens by itself cannot be seen from here", advice)
	}
}
