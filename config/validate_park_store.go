package config

import (
	"net/url"
	"strings"
)

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
	v.positive(path+".request_timeout", s.RequestTimeout)
	v.pair(path+".tls", s.TLS.CertFile, s.TLS.KeyFile)
}
