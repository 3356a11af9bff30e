package session

import (
	"context"
	"strings"

	"hooklock/etcdlock/link"
	"hooklock/etcdlock/protocol"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// runReflector follows the sessions, the pauses, the forgets, the own cancels and the ends of holds
// from after revision, until ctx ends. In quiet times it sees one key for each process, so its cost
// does not depend on the deliveries.
func (k *Keeper) runReflector(ctx context.Context, s *Session, revision int64) {
	(&link.Reflector{Pool: k.options.Pool, On: link.OfSession, Source: &followed{keeper: k, session: s}}).Run(ctx,
		revision)
}

// followed is what a session follows.
type followed struct {
	link.Needed
	keeper  *Keeper
	session *Session
}

// List implements link.Source.
func (f *followed) List(ctx context.Context) (int64, error) {
	return f.keeper.listFollowed(ctx, f.session)
}

// Watches implements link.Source.
func (f *followed) Watches(from int64) []link.Watch { return f.keeper.followedWatches(f.session, from) }

func (k *Keeper) followedWatches(s *Session, from int64) []link.Watch {
	below := func(prefix string, news func(name string), but ...clientv3.OpOption) link.Watch {
		return link.Watch{Key: prefix, Opts: append(but, clientv3.WithPrefix(), clientv3.WithRev(from)),
			News: func(e *clientv3.Event) {
				news(strings.TrimPrefix(string(e.Kv.Key), prefix))
			}}
	}
	sessions := below(k.options.Layout.All(protocol.KindSessions), nil)
	sessions.News = func(e *clientv3.Event) { k.applySessionEvent(s, e) }
	pauses := below(k.options.Layout.All(protocol.KindPauses), nil)
	pauses.Batch = k.options.Pauses.Events
	holds := k.options.Layout.All(protocol.KindHolds)
	unheld := below(holds, nil, clientv3.WithFilterPut())
	unheld.News = func(e *clientv3.Event) {
		k.options.On.OnUnheld(strings.TrimPrefix(string(e.Kv.Key), holds), e.Kv.ModRevision)
	}
	return []link.Watch{
		sessions,
		pauses,
		below(k.options.Layout.All(protocol.KindForgets), k.options.On.OnForgot, clientv3.WithFilterDelete()),
		below(k.options.Layout.All(protocol.KindCancels+s.Name+"/"), k.options.On.OnAsked, clientv3.WithFilterDelete()),
		unheld,
	}
}

func (k *Keeper) applySessionEvent(s *Session, e *clientv3.Event) {
	name := strings.TrimPrefix(string(e.Kv.Key), k.options.Layout.All(protocol.KindSessions))
	switch {
	case e.Type != mvccpb.DELETE:
		k.options.Live.Add(name, e.Kv.ModRevision)
	case name == s.Name:
		k.options.Live.Remove(name, e.Kv.ModRevision)
		s.End(ErrGone)
	default:
		k.options.Live.Remove(name, e.Kv.ModRevision)
		k.options.On.OnDied([]string{name})
	}
}

// listFollowed reads the live sessions, the pauses, and the locks that this process was asked to
// look at. It returns the error of ctx, or why the session is over.
func (k *Keeper) listFollowed(ctx context.Context, s *Session) (int64, error) {
	k.options.On.OnMissed(0)
	cancels := k.options.Layout.All(protocol.KindCancels + s.Name + "/")
	answers, revision, err := k.options.Pool.Read(ctx,
		clientv3.OpGet(k.options.Layout.All(protocol.KindSessions), clientv3.WithPrefix(), clientv3.WithKeysOnly()),
		clientv3.OpGet(cancels, clientv3.WithPrefix(), clientv3.WithKeysOnly()),
		clientv3.OpGet(k.options.Layout.All(protocol.KindPauses), clientv3.WithPrefix()),
	)
	if err != nil {
		if ctx.Err() == nil { // no session without what it follows
			s.End(err)
		}
		return 0, err
	}
	for _, kv := range answers[1].GetResponseRange().Kvs {
		k.options.On.OnAsked(strings.TrimPrefix(string(kv.Key), cancels))
	}
	k.options.Pauses.Replace(answers[2].GetResponseRange().Kvs, revision)
	names := k.sessionNames(answers[0])
	k.options.On.OnDied(k.options.Live.Replace(names, revision))
	if _, there := names[s.Name]; !there {
		s.End(ErrGone)
		return 0, ErrGone
	}
	k.options.On.OnMissed(revision)
	return revision, nil
}
