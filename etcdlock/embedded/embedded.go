// Package embedded runs a single etcd member inside this process, for one replica that needs no
// etcd of its own. It listens nowhere: the only way in is the Client, so no other process can read
// or change its data. Every write is synced to disk before it is answered, so a killed process
// loses nothing that was recorded.
//
// Words: a Server is the running member. To look is to read its directory without changing it, and
// the State is what is there. To save is to write a snapshot into a file, to restore is to make the
// directory anew from one, and to export is to make the data of a cluster, for its Members, from
// it.
package embedded

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/etcdserver"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3client"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3rpc"
	"go.etcd.io/etcd/server/v3/features"
	"go.etcd.io/etcd/server/v3/storage/schema"
)

// Options of the embedded etcd.
type Options struct {
	// Dir holds its data and nothing else. It is made with mode 0700, or set to it.
	Dir string
	// Quota bounds the database, in bytes; 0 = 2 GiB. When it is used up, etcd takes no more writes
	// until records have expired. History is dropped, and the file made smaller, before that and
	// then.
	Quota int64
	// Logger gets etcd's errors, and before etcd ends the process the reason; nil = slog.Default().
	Logger *slog.Logger
	// Flush writes out what the Logger has buffered; nil = it buffers nothing. It is called before
	// etcd ends the process.
	Flush func()

	tidyEvery   time.Duration // 0 = defaultTidyEvery
	startWithin time.Duration // 0 = startTimeout
}

const (
	defaultQuota = 2 << 30
	startTimeout = 60 * time.Second // a large database is read whole
	// The history is for etcd's watches; nothing here reads it. It is compacted after five minutes,
	// or when it is long (maxHistory).
	history = "5m"
	// The member's name in its data. It is not seen outside.
	memberName  = "hooklock"
	defaultPeer = "http://localhost:2380"
)

// Server is a running embedded etcd.
type Server struct {
	etcd   *embed.Etcd
	client *clientv3.Client
	lock   *os.File
	tidier *tidier
	found  Found
	once   sync.Once
	err    error

	tidying  sync.WaitGroup
	stopTidy context.CancelFunc
}

// Found is what a start found in its directory.
type Found string

// The findings.
const (
	Records = Found("records") // or nothing yet, of a process that has recorded nothing
	Nothing = Found("nothing") // no process has used it, as far as can be seen
	Emptied = Found("emptied") // a process has used it, and its records are missing
)

// Start returns when the member answers. Its errors say what to do.
func Start(o Options) (*Server, error) {
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.Quota == 0 {
		o.Quota = defaultQuota
	}
	if o.tidyEvery == 0 {
		o.tidyEvery = defaultTidyEvery
	}
	if o.startWithin == 0 {
		o.startWithin = startTimeout
	}
	found := findContents(o.Dir)
	lock, err := prepareDir(o.Dir)
	if err != nil {
		return nil, err
	}
	etcd, err := startEtcd(o)
	if err != nil {
		_ = lock.Close()
		return nil, fmt.Errorf("start the embedded etcd in %s: %w", o.Dir, err)
	}
	s := &Server{etcd: etcd, client: inProcess(etcd.Server), lock: lock, found: found}
	s.tidier = &tidier{server: etcd.Server, client: s.client, quota: o.Quota, history: maxHistory, log: o.Logger,
		now: time.Now}
	s.tidier.files.lock = lock
	s.tidier.files.noteCurrent()
	s.tidier.measureSpace() // Space is known from the start
	s.keepTidy(o.tidyEvery)
	return s, nil
}

// inProcess returns etcd's client without a connection, which also takes a transaction in its wire
// form, as link.Committer.
func inProcess(s *etcdserver.EtcdServer) *clientv3.Client {
	c := v3client.New(s)
	c.KV = &directKV{c.KV, v3rpc.NewQuotaKVServer(s)}
	return c
}

type directKV struct {
	clientv3.KV
	server pb.KVServer
}

// Commit implements link.Committer.
func (kv *directKV) Commit(ctx context.Context, txn *pb.TxnRequest) (*pb.TxnResponse, error) {
	response, err := kv.server.Txn(ctx, txn)
	return response, clientv3.ContextError(ctx, err)
}

// keepTidy runs the tidier until Close.
func (s *Server) keepTidy(every time.Duration) {
	var life context.Context
	life, s.stopTidy = context.WithCancel(context.Background())
	s.tidying.Go(func() {
		ticker := time.NewTicker(every)
		defer ticker.Stop()
		s.tidier.run(life, ticker.C)
	})
}

// Space returns how full the database was at the last look, about a second ago.
func (s *Server) Space() Space { return s.tidier.lastSpace() }

// Found returns what was in the directory before the start.
func (s *Server) Found() Found { return s.found }

// Client returns the only way in. It ends with the Server.
func (s *Server) Client() *clientv3.Client { return s.client }

// Close ends the member and frees its directory. It may be called more than once.
func (s *Server) Close() error {
	s.once.Do(func() {
		s.stopTidy()
		s.tidying.Wait()
		err := s.client.Close()
		if errors.Is(err, context.Canceled) { // the usual error of a client without a connection
			err = nil
		}
		s.etcd.Close()
		s.err = errors.Join(err, s.lock.Close())
	})
	return s.err
}

func startEtcd(o Options) (*embed.Etcd, error) {
	if err := checkAddressSpace(o.Quota); err != nil {
		return nil, err
	}
	if err := checkIntact(o.Dir); err != nil {
		return nil, err
	}
	etcd, err := startServer(newConfig(o))
	if err != nil {
		return nil, err
	}
	if err := o.awaitReady(etcd); err != nil {
		etcd.Close()
		return nil, err
	}
	return etcd, nil
}

// awaitReady returns when the member answers.
func (o *Options) awaitReady(etcd *embed.Etcd) error {
	log := &catchUp{kept: consistentIndex(etcd.Server), first: etcd.Server.CommittedIndex()}
	timeout, look := time.NewTimer(o.startWithin), time.NewTicker(lookEvery)
	defer timeout.Stop()
	defer look.Stop()
	for {
		select {
		case <-etcd.Server.ReadyNotify():
			return nil
		case err := <-etcd.Err():
			return err
		case <-etcd.Server.StopNotify():
			return errors.New("it stopped; the reason is in the log")
		case <-look.C:
			if err := log.checkProgress(etcd.Server.CommittedIndex()); err != nil {
				return err
			}
		case <-timeout.C:
			return fmt.Errorf("it was not ready after %v; is the disk very slow?", o.startWithin)
		}
	}
}

// consistentIndex returns how far in its log the database has come.
func consistentIndex(s *etcdserver.EtcdServer) uint64 {
	index, _ := schema.ReadConsistentIndex(s.Backend().ReadTx())
	return index
}

// catchUp is how far the log has been read back since the start.
type catchUp struct {
	kept  uint64 // how far the database has come
	first uint64 // how far the log had come at first
	has   uint64
	looks int // since it had come so far
}

const (
	lookEvery = 100 * time.Millisecond
	// standstill is for how many looks the log must not advance to count as ended. It is read in
	// parts of up to 1 MiB, and between two of them a busy machine, or a disk, may take its time. A
	// process that was stopped meanwhile has not looked.
	standstill = 50
)

// checkProgress returns an error if the log ends before the database. etcd applies nothing that the
// database seems to have, so it would wait for ever for a log that goes on from an earlier
// position. On a slow disk the log advances late.
func (c *catchUp) checkProgress(has uint64) error {
	if has != c.has {
		c.has, c.looks = has, 0
	}
	if c.looks++; has > c.first && has < c.kept && c.looks >= standstill {
		return fmt.Errorf("its log is older than its database (%d of %d): the disk lost what it had kept, or these "+
			"are files that were copied from "+
			"a process that ran; %s", has, c.kept, whatToDo)
	}
	return nil
}

// startServer starts the member. If it cannot write its first files, on a full disk above all, etcd
// logs why and panics with a text.
func startServer(c *embed.Config) (etcd *embed.Etcd, err error) {
	defer func() {
		switch p := recover().(type) {
		case nil:
		case string:
			err = fmt.Errorf("etcd: %s (the line before says why); free space there, or set data_dir to another place",
				p)
		default:
			panic(p)
		}
	}()
	if etcd, err = embed.StartEtcd(c); err != nil {
		return nil, fmt.Errorf("%w; if its files are damaged, %s", err, whatToDo)
	}
	return etcd, nil
}

func newConfig(o Options) *embed.Config {
	c := embed.NewConfig()
	c.Name = memberName
	c.Dir = o.Dir
	c.ListenClientUrls, c.ListenPeerUrls = nil, nil // the advertised ones are only names then
	c.InitialCluster = c.InitialClusterFromName(c.Name)
	// There is no other candidate for the leadership: the election only delays the start.
	c.TickMs, c.ElectionMs = 50, 500
	c.QuotaBackendBytes = o.Quota
	c.AutoCompactionMode, c.AutoCompactionRetention = embed.CompactorModePeriodic, history
	// The raft log is kept in memory; grouped transactions make its entries large, and no follower
	// has to catch up.
	c.SnapshotCount, c.SnapshotCatchUpEntries = 500, 100
	keepLeaseTimes(c)
	c.ZapLoggerBuilder = embed.NewZapLoggerBuilder(newLogger(o.Logger, o.Flush))
	return c
}

// keepLeaseTimes lets etcd write down every five minutes how long each lease still lives. Without
// it each start gives all leases their whole time again, so that nothing ever expires where that is
// longer than a process lives (etcd-io/etcd#9395).
func keepLeaseTimes(c *embed.Config) {
	gates, _ := c.ServerFeatureGate.(interface {
		SetFromMap(on map[string]bool) error
	})
	_ = gates.SetFromMap(map[string]bool{ // the version of etcd that is linked in knows both
		string(features.LeaseCheckpoint): true, string(features.LeaseCheckpointPersist): true,
	})
}
