package config

import (
	"fmt"
	"strings"
	"time"

	"hooklock/idem"
)

func (v *validator) checkEtcd() {
	e := v.config.Etcd
	v.check("etcd.prefix", checkPrefix(e.Prefix))
	if e.SessionTTL < minSessionTTL || e.SessionTTL > maxSessionTTL || e.SessionTTL%time.Second != 0 {
		v.refuse("etcd.session_ttl", "%s is out of bounds; choose whole seconds from %s to %s",
			idem.DurationText(e.SessionTTL), idem.DurationText(minSessionTTL), idem.DurationText(maxSessionTTL))
	}
	v.requirePositive("etcd.request_timeout", e.RequestTimeout)
	v.require(e.RequestTimeout < e.SessionTTL, "etcd.request_timeout",
		"%s must be shorter than session_ttl (%s), or a session can end while a decision is awaited",
		idem.DurationText(e.RequestTimeout), idem.DurationText(e.SessionTTL))
	v.requireSize("etcd.embedded.quota", e.Embedded.Quota, minQuota, maxQuota)
	v.checkPair("etcd.tls", e.TLS.CertFile, e.TLS.KeyFile)
	hasPassword := e.PasswordFile != "" || e.PasswordEnv != "" || !e.Password.IsZero()
	v.require(e.Username == "" || hasPassword, "etcd.username", "needs password_file or password_env beside it")
	v.require(e.Username != "" || !hasPassword, passwordPath(e), "needs username beside it")
	if len(e.Endpoints) == 0 {
		v.checkEmbedded()
	} else {
		v.checkEndpoints()
	}
}

func passwordPath(e Etcd) string {
	if e.PasswordEnv != "" {
		return "etcd.password_env"
	}
	return "etcd.password_file"
}

func checkPrefix(prefix string) error {
	if !madeOf(prefix, alphanumeric+"/-_.") || len(prefix) < 2 || len(prefix) > 256 || prefix[0] != '/' ||
		strings.HasSuffix(prefix, "/") || strings.Contains(prefix, "//") {
		return fmt.Errorf("%q is not a prefix; write e.g. /hooklock: letters, digits, -, _ and . between single "+
			"slashes, none at the end", prefix)
	}
	return nil
}

// checkEmbedded checks what only matters without endpoints.
func (v *validator) checkEmbedded() {
	e := v.config.Etcd
	v.require(v.config.DataDir != "", "data_dir",
		"is empty, and the embedded etcd needs a folder; or name etcd.endpoints")
	const single = "etcd.embedded.single_replica"
	switch {
	case v.inKubernetes && !e.Embedded.SingleReplica:
		v.refuse("etcd.endpoints", "is empty inside Kubernetes: with two replicas, each with its own embedded etcd, "+
			"every event could run twice; name the endpoints of a shared etcd, or set %s if there is only ever one "+
			"replica", single)
	case v.inKubernetes:
		v.warn(single, "locks and records are in this pod alone: a second replica, or a rolling update that "+
			"overlaps, runs events twice")
	}
	if e.Username != "" {
		v.warn("etcd.username", "has no effect: etcd.endpoints is empty, and the embedded etcd asks for no password")
	}
	if e.TLS != (ClientTLS{}) {
		v.warn("etcd.tls", "has no effect: etcd.endpoints is empty, and the embedded etcd is inside this process")
	}
}

func (v *validator) checkEndpoints() {
	e := v.config.Etcd
	seen, schemes := map[string]int{}, map[string]int{}
	for i, endpoint := range e.Endpoints {
		path := indexedPath("etcd.endpoints", i)
		scheme, err := checkEndpoint(endpoint)
		if err != nil {
			v.check(path, err)
			continue
		}
		if scheme != "" {
			schemes[scheme]++
		}
		first, twice := seen[endpoint]
		v.require(!twice, path, "is the same as etcd.endpoints[%d]", first)
		seen[endpoint] = i
	}
	v.require(schemes["http"] == 0 || schemes["https"] == 0, "etcd.endpoints",
		"some are http and some are https; all must be the same")
	if schemes["http"] > 0 && e.TLS != (ClientTLS{}) {
		v.warn("etcd.tls", "has no effect: etcd.endpoints are http")
	}
	if e.Embedded.SingleReplica {
		v.warn("etcd.embedded.single_replica", "has no effect: etcd.endpoints are given, so there is no embedded etcd")
	}
	if e.Embedded.Quota != Default().Etcd.Embedded.Quota {
		v.warn("etcd.embedded.quota", "has no effect: etcd.endpoints are given, so there is no embedded etcd")
	}
}
