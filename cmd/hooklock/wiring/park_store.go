package wiring

import (
	"fmt"
	"strings"

	"hooklock/cmd/hooklock/cli"
	"hooklock/config"
	"hooklock/proxy/parked"
)

// ParkOptions say where the bytes of parked requests are kept: what parked.Open takes at the start, and Keeper.Reload afterwards.
func ParkOptions(c *config.Config) (parked.Options, error) {
	p := &c.ParkStore
	o := parked.Options{Inline: int(p.Inline), Dir: c.RequestsDir(), Keys: p.Keys.Reveal()}
	if p.S3.Endpoint == "" {
		return o, nil
	}
	o.S3 = &parked.S3Options{
		Endpoint: strings.TrimSuffix(p.S3.Endpoint, "/"), Bucket: p.S3.Bucket, Prefix: p.S3.Prefix, Region: p.S3.Region,
		AccessKey: p.S3.AccessKey.Reveal(), SecretKey: p.S3.SecretKey.Reveal(), Timeout: p.S3.RequestTimeout,
	}
	if !strings.HasPrefix(p.S3.Endpoint, "https:") {
		return o, nil
	}
	t, err := ClientTLS(&p.S3.TLS)
	if err != nil {
		return o, cli.Misuse(fmt.Errorf("park_store.s3.tls: %w", err))
	}
	o.S3.TLS = t
	return o, nil
}

// checkKeys judges a key file.
func checkKeys(text string) error {
	_, err := parked.ParseKeys(text)
	return err
}
