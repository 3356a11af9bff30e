package config

import (
	"net/url"
	"reflect"
	"slices"
	"strings"
	"time"

	"hooklock/idem"
)

const (
	maxParkedEvents  = 10_000_000
	maxParkedRunning = 10_000
	maxParkAge       = 30 * 24 * time.Hour
)

func (v *validator) checkParkedLimits() {
	p := v.config.Limits.Parked
	v.requireNumber("limits.parked.events", p.Events, maxParkedEvents)
	v.require(p.Bytes > 0, "limits.parked.bytes", "must be more than 0B; park: false parks nothing")
	v.requireNumber("limits.parked.running", p.Running, maxParkedRunning)
}

const (
	maxKeptEvents = 1_000_000_000
	maxKeep       = 366 * 24 * time.Hour
)

func (v *validator) checkKeptLimits() {
	k := v.config.Limits.Kept
	v.requireNumber("limits.kept.events", k.Events, maxKeptEvents)
	v.require(k.Bytes > 0, "limits.kept.bytes", "must be more than 0B; a route without requests.keep keeps nothing")
}

// checkRequests checks whether the requests of a route can be kept.
func (v *validator) checkRequests(path string, r *Route) {
	keep := r.Requests.Keep
	path += ".keep"
	if keep == 0 {
		return
	}
	v.require(keep >= time.Minute && keep <= maxKeep, path,
		"%s is out of bounds; choose from 1m to %s, or 0s to keep none", idem.DurationText(keep),
		idem.DurationText(maxKeep))
	v.require(v.config.KeepsLong(), path, "needs park_store.dir or park_store.s3: etcd is no place for the requests "+
		"of all events")
	v.warnIdle(path, r.Mode == ModeObserve, "mode is observe")
	if age := r.Idempotency.Retention; keep > age {
		v.warn(path, "%s is longer than idempotency.retention (%s): a request is found by its record, which is gone "+
			"then", idem.DurationText(keep), idem.DurationText(age))
	}
}

// parksAny reports whether a route accepts events, for which this process is then responsible.
func (c *Config) parksAny() bool {
	return slices.ContainsFunc(c.Routes, func(r Route) bool { return r.Park.Enabled && r.Mode != ModeObserve })
}

// KeepsLong reports whether requests longer than park_store.inline can be kept.
func (c *Config) KeepsLong() bool {
	return len(c.Etcd.Endpoints) == 0 || c.ParkStore.Dir != "" || c.ParkStore.S3.Endpoint != ""
}

// whereParked checks where parked requests are stored.
func (v *validator) whereParked() {
	c := v.config
	if !c.parksAny() {
		return
	}
	v.require(len(c.Etcd.Endpoints) > 0 || c.ParkStore.SingleMember, "park_store.single_member",
		"must be true to park with the embedded etcd: it has one member, and if its disk is lost, so are events "+
			"that their senders take for received; "+
			"say so with single_member: true, and make backups, or give the endpoints of a cluster (etcd.endpoints)")
	if !c.KeepsLong() && c.Limits.RequestBody > c.ParkStore.Inline {
		v.warn("park_store", "neither s3 nor dir is set: requests over park_store.inline (%s) are not parked, and "+
			"limits.request_body is %s", c.ParkStore.Inline, c.Limits.RequestBody)
	}
}

// checkPark checks names and numbers; checks that need to know the sender are for
// Source.CheckRoute.
func (v *validator) checkPark(path string, r *Route) {
	p, usual := &r.Park, defaultRoute().Park
	v.requireDuration(path+".after", p.After, 0, maxRetention)
	v.require(p.Answer >= 200 && p.Answer < 300 && p.Answer != 205, path+".answer",
		"%d does not say that the event was received; choose a 2xx that the sender takes", p.Answer)
	v.requireDuration(path+".max_age", p.MaxAge, time.Second, maxParkAge)
	v.requireNumber(path+".attempts", p.Attempts, 1000)
	v.requireNumber(path+".max_waiting", p.MaxWaiting, maxParkedEvents)
	v.require(p.Enabled || r.OnSenderLimit != SenderLimitPark, strings.TrimSuffix(path, "park")+"on_sender_limit",
		"park: the route does not park; say park: true")
	if !p.Enabled {
		const off = "park.enabled is false"
		v.warnIdle(path+".after", p.After != usual.After, off)
		v.warnIdle(path+".max_age", p.MaxAge != usual.MaxAge, off)
		v.warnIdle(path+".attempts", p.Attempts != usual.Attempts, off)
		v.warnIdle(path+".on_failure", p.OnFailure != usual.OnFailure, off)
		v.warnIdle(path+".delay", p.Delay != usual.Delay, off)
		v.warnIdle(path+".retry", !reflect.DeepEqual(p.Retry, usual.Retry), off)
		return
	}
	v.parkRetry(path, r)
	v.require(len(p.On) > 0, path+".on", "is empty: nothing would be parked; leave it out, or say park: false")
	v.require(r.Lock.Strategy != idem.Skip, path,
		"lock.strategy skip drops what meets a lock, and park keeps it; choose one of them")
	if !r.Idempotency.Enabled {
		v.warn(path, "idempotency.enabled is false: a copy of a parked event is another event, and runs after it")
	}
	if r.OnStoreDown == StoreDownForward {
		v.warn(path, "on_store_down is forward: while the store cannot decide, deliveries pass those that are parked")
	}
	if age := r.Idempotency.Retention; p.MaxAge > age {
		v.warn(path+".max_age", "%s is longer than idempotency.retention (%s): a dead letter is kept for that long",
			idem.DurationText(p.MaxAge), idem.DurationText(age))
	}
}

// parkRetry checks when parked events are tried.
func (v *validator) parkRetry(path string, r *Route) {
	p, i := &r.Park, &r.Idempotency
	v.require(p.Retry.First >= 100*time.Millisecond && p.Retry.First <= p.Retry.Most, path+".retry.first",
		"%s is out of bounds; choose from 100ms to park.retry.most (%s)", idem.DurationText(p.Retry.First),
		idem.DurationText(p.Retry.Most))
	v.require(p.Retry.Most <= 24*time.Hour, path+".retry.most", "%s is out of bounds; choose up to 24h",
		idem.DurationText(p.Retry.Most))
	v.require(len(p.Retry.On) > 0, path+".retry.on",
		"is empty: no failed event would be tried again; leave it out, or say attempts: 1")
	for n, on := range p.Retry.On {
		v.require(on.Low >= 300, indexedPath(path+".retry.on", n),
			"%s says that the event went through; choose from 300 to 599", on)
	}
	v.require(p.Delay >= 0 && p.Delay < p.MaxAge, path+".delay",
		"%s is out of bounds; choose from 0s to less than park.max_age (%s)", idem.DurationText(p.Delay),
		idem.DurationText(p.MaxAge))
	v.require(p.Delay == 0 || slices.Contains(p.On, idem.ParkLocked), path+".delay",
		"needs locked in park.on: an event that may not be accepted at once would run at once")
	if i.Enabled && i.Attempts > 0 && p.Attempts > i.Attempts {
		v.warn(path+".attempts", "%d is more than idempotency.attempts (%d), which ends the tries earlier; raise "+
			"that, too", p.Attempts, i.Attempts)
	}
}

// maxInline is the largest request that is stored in etcd: a transaction may have 1.5 MiB, and
// larger values slow each lock.
const maxInline = 256 * KiB

func (v *validator) parkStore() {
	v.whereParked()
	p := v.config.ParkStore
	v.require(p.Inline >= 0 && p.Inline <= maxInline, "park_store.inline",
		"%s is out of bounds; choose from 0B to %s, and set dir or s3 for longer requests", p.Inline, maxInline)
	if !p.Keys.IsZero() && v.checkKeys != nil {
		v.check("park_store.key_file", v.checkKeys(p.Keys.Reveal()))
	}
	if p.S3.Endpoint == "" {
		without := p.S3
		without.Region, without.RequestTimeout = Default().ParkStore.S3.Region, Default().ParkStore.S3.RequestTimeout
		v.require(without == Default().ParkStore.S3, "park_store.s3",
			"needs endpoint: https://host or http://host:port")
	} else {
		v.s3()
	}
	switch {
	case p.Dir == "":
	case p.S3.Endpoint != "":
		v.refuse("park_store.dir", "is set beside s3: choose one")
	case len(v.config.Etcd.Endpoints) > 0:
		v.warn("park_store.dir", "every replica must see this folder: where it is a disk of this machine, parked "+
			"requests wait until this machine is back; s3 is for several")
	}
}

func (v *validator) s3() {
	const path = "park_store.s3"
	s := v.config.ParkStore.S3
	u, err := url.Parse(s.Endpoint)
	switch {
	case hasUser(s.Endpoint):
		v.check(path+".endpoint", errUser)
	case err != nil || u.Scheme != "http" && u.Scheme != "https":
		v.refuse(path+".endpoint", "%q is not a URL; write https://host or http://host:port", beforeQuery(s.Endpoint))
	default:
		v.check(path+".endpoint", checkServerURL(u))
		v.require(u.Scheme == "https" || s.TLS == (ClientTLS{}), path+".tls", "is for https, and endpoint is http")
	}
	v.require(len(s.Bucket) >= 3 && len(s.Bucket) <= 63 && madeOf(s.Bucket, lowerCase+digits+".-"), path+".bucket",
		"%q is not the name of a bucket: 3 to 63 small letters, digits, - and .", s.Bucket)
	v.require(madeOf(s.Prefix, alphanumeric+"/-_.") && len(s.Prefix) <= 256 &&
		strings.Trim(s.Prefix, "/") == s.Prefix && !strings.Contains(s.Prefix, "//") &&
		!strings.Contains(s.Prefix, ".."),
		path+".prefix", "%q is not a prefix; write e.g. hooklock/production: letters, digits, -, _ and . between "+
			"single slashes, none at the ends", s.Prefix)
	v.require(s.Region != "", path+".region", "is empty; write us-east-1 where the server knows no regions")
	v.require(s.AccessKeyFile != "" || !s.AccessKey.IsZero(), path+".access_key_file",
		"is missing: the file with the ID of the access key")
	v.require(s.SecretKeyFile != "" || !s.SecretKey.IsZero(), path+".secret_key_file",
		"is missing: the file with the secret of the access key")
	v.requirePositive(path+".request_timeout", s.RequestTimeout)
	v.checkPair(path+".tls", s.TLS.CertFile, s.TLS.KeyFile)
}
