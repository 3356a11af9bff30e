package requests

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"iter"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"hooklock/idem"
	"hooklock/proxy/connect"
)

// s3Tries is how often a request is made that gets no whole answer, or one that says "later",
// before its time is over.
const s3Tries = 3

// S3Options locate a bucket. Every field without "empty" is required.
type S3Options struct {
	// Endpoint is http://host:port or https://host:port, without a path. The bucket is named in the
	// path of each request.
	Endpoint string
	Bucket   string
	// Prefix is the beginning of each object's name, without slashes at its ends; only one Hooklock
	// may use it. Empty: the bucket is its own.
	Prefix string
	// Region is part of signatures. Servers without regions take us-east-1.
	Region string
	// AccessKey and SecretKey sign each request. They are in no error.
	AccessKey, SecretKey string
	// TLS says how an https endpoint is verified; nil: with the system's roots.
	TLS *tls.Config
	// Timeout is for one call, with all its tries. Past it the call has failed.
	Timeout time.Duration
}

// S3 keeps each request in an object of an existing bucket. Objects with other names are left
// alone.
type S3 struct {
	options   S3Options
	secure    bool
	host      string
	transport *http.Transport
	client    atomic.Pointer[minio.Core]
}

// NewS3 sends no request yet. Close it.
func NewS3(o S3Options) (*S3, error) {
	u, err := url.Parse(o.Endpoint)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, errors.New("s3.endpoint is not a URL; write http://host:port or https://host:port")
	}
	s := &S3{options: o, secure: u.Scheme == "https", host: u.Host, transport: &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           (&connect.Dialer{Dialer: net.Dialer{Timeout: o.Timeout}}).DialContext,
		TLSHandshakeTimeout:   o.Timeout,
		ResponseHeaderTimeout: o.Timeout,
		MaxIdleConnsPerHost:   16,
		IdleConnTimeout:       time.Minute,
		TLSClientConfig:       o.TLS,
		DisableCompression:    true, // what is stored comes back as it was
	}}
	return s, s.SetCredentials(o.AccessKey, o.SecretKey)
}

// SetCredentials replaces the keys for new requests.
func (s *S3) SetCredentials(accessKey, secretKey string) error {
	core, err := minio.NewCore(s.host, &minio.Options{
		Creds:  credentials.NewStaticV4(accessKey, secretKey, ""),
		Secure: s.secure, Transport: s.transport, Region: s.options.Region,
		BucketLookup: minio.BucketLookupPath, MaxRetries: s3Tries,
	})
	if err != nil {
		return s.wrapError("open", err)
	}
	s.client.Store(core)
	return nil
}

// Close ends idle connections.
func (s *S3) Close(context.Context) error {
	s.transport.CloseIdleConnections()
	return nil
}

// Put writes an object whole; the server checks its SHA-256. It is durable when the server says so.
func (s *S3) Put(ctx context.Context, execution idem.ExecutionID, b []byte) error {
	object, err := s.objectName(execution)
	if err != nil {
		return err
	}
	return s.putObject(ctx, object, b)
}

func (s *S3) putObject(ctx context.Context, object string, b []byte) error {
	ctx, cancel := s.requestContext(ctx)
	defer cancel()
	sum := sha256.Sum256(b)
	written, err := s.client.Load().PutObject(ctx, s.options.Bucket, object, bytes.NewReader(b), int64(len(b)), "",
		hex.EncodeToString(sum[:]),
		minio.PutObjectOptions{ContentType: "application/octet-stream", DisableContentSha256: true})
	if err == nil && written.ETag == "" {
		err = errNoS3
	}
	return s.wrapError("keep a request in", err)
}

// errNoS3 is returned for a 200 that does not confirm what was stored, as every S3 server does: a
// proxy or a web server answers any request so.
var errNoS3 = errors.New("the answer is not one of an S3 server, and nothing was kept: look at s3.endpoint, and at " +
	"what stands in front of it")

// Get reads an object whole, and begins anew if the server breaks off.
func (s *S3) Get(ctx context.Context, execution idem.ExecutionID) ([]byte, error) {
	object, err := s.objectName(execution)
	if err != nil {
		return nil, err
	}
	return s.getObject(ctx, object)
}

func (s *S3) getObject(ctx context.Context, object string) ([]byte, error) {
	ctx, cancel := s.requestContext(ctx)
	defer cancel()
	for try := 1; ; try++ {
		b, err := s.readObject(ctx, object)
		if err == nil {
			return b, nil
		}
		if minio.ToErrorResponse(err).Code == minio.NoSuchKey {
			return nil, ErrNotKept
		}
		if !errors.Is(err, errBroken) || try == s3Tries || ctx.Err() != nil {
			return nil, s.wrapError("read a request from", err)
		}
	}
}

// errBroken is returned for an object that was cut off.
var errBroken = errors.New("the answer broke off")

func (s *S3) readObject(ctx context.Context, object string) ([]byte, error) {
	body, info, _, err := s.client.Load().GetObject(ctx, s.options.Bucket, object, minio.GetObjectOptions{})
	if err != nil {
		return nil, err
	}
	defer func() { _ = body.Close() }()
	if info.Size > int64(maxKept) {
		return nil, ErrFormat
	}
	b := make([]byte, max(info.Size, 0))
	_, err = io.ReadFull(body, b)
	if info.Size < 0 { // in chunks, or until the server closes; what is cut off then is not what the reference says
		b, err = io.ReadAll(io.LimitReader(body, int64(maxKept)+1))
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errBroken, err)
	}
	if len(b) > maxKept {
		return nil, ErrFormat
	}
	return b, nil
}

// Delete deletes an object.
func (s *S3) Delete(ctx context.Context, execution idem.ExecutionID) error {
	object, err := s.objectName(execution)
	if err != nil {
		return err
	}
	return s.removeObject(ctx, object)
}

func (s *S3) removeObject(ctx context.Context, object string) error {
	ctx, cancel := s.requestContext(ctx)
	defer cancel()
	return s.wrapError("delete a request from",
		s.client.Load().RemoveObject(ctx, s.options.Bucket, object, minio.RemoveObjectOptions{}))
}

// List yields the executions of the objects with the prefix, as long as the server takes for it.
func (s *S3) List(ctx context.Context) iter.Seq2[idem.ExecutionID, error] {
	return func(yield func(idem.ExecutionID, error) bool) {
		folder := s.keyPrefix()
		ctx, cancel := context.WithCancel(ctx)
		defer cancel() // the client gives up what is not read to its end
		for object := range s.client.Load().ListObjectsIter(ctx, s.options.Bucket,
			minio.ListObjectsOptions{Prefix: folder}) {
			if object.Err != nil {
				yield("", s.wrapError("list the requests in", object.Err))
				return
			}
			execution := idem.ExecutionID(strings.TrimPrefix(object.Key, folder))
			if _, err := storeName(execution); err == nil && !yield(execution, nil) {
				return
			}
		}
		if ctx.Err() != nil {
			yield("", s.wrapError("list the requests in", ctx.Err()))
		}
	}
}

func (s *S3) requestContext(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, s.options.Timeout)
}

func (s *S3) objectName(execution idem.ExecutionID) (string, error) {
	name, err := storeName(execution)
	return s.keyPrefix() + name, err
}

func (s *S3) keyPrefix() string {
	if s.options.Prefix == "" {
		return ""
	}
	return s.options.Prefix + "/"
}

// wrapError says what went wrong and what to do, in own words and the server's code alone: its
// other text may be anything. nil stays nil.
func (s *S3) wrapError(doing string, err error) error {
	if err == nil {
		return nil
	}
	if of, ok := errors.AsType[*url.Error](err); ok {
		err = of.Err // without the URL, which is said here
	}
	place := fmt.Sprintf("%s the bucket %s at %s", doing, s.options.Bucket, s.options.Endpoint)
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("%s: no whole answer in time: %w", place, err)
	}
	var answer minio.ErrorResponse
	if !errors.As(err, &answer) || answer.StatusCode == 0 {
		return fmt.Errorf("%s: %w", place, err)
	}
	switch answer.Code {
	case minio.NoSuchBucket:
		return fmt.Errorf("%s: there is no such bucket: make it, or set s3.bucket to another", place)
	case minio.InvalidAccessKeyID, minio.SignatureDoesNotMatch:
		return fmt.Errorf("%s: the server does not know these keys: look at s3.access_key_file, s3.secret_key_file "+
			"and s3.region", place)
	case minio.AccessDenied:
		return fmt.Errorf("%s: these keys may not do that: allow them to get, put, delete and list", place)
	case minio.RequestTimeTooSkewed:
		return fmt.Errorf("%s: this machine's clock is not the server's: set it", place)
	case "PermanentRedirect", "TemporaryRedirect", minio.AuthorizationHeaderMalformed:
		return fmt.Errorf("%s: the bucket is in another region: look at s3.endpoint and s3.region", place)
	}
	return fmt.Errorf("%s: the server answers %d %.64s", place, answer.StatusCode,
		strings.Map(keepCodeLetter, answer.Code))
}

// keepCodeLetter drops characters that occur in no code.
func keepCodeLetter(r rune) rune {
	if strings.ContainsRune(keyLetter, r) {
		return r
	}
	return -1
}
