package requests

import (
	"context"
	"errors"
	"net/http"
	"path"
	"strings"
	"sync"

	"github.com/minio/minio-go/v7"

	"hooklock/idem"
)

// s3Area is the area in the bucket of an S3: each frame is an object.
type s3Area struct{ *S3 }

// maxPuts is how many objects are put at a time.
const maxPuts = 16

func (s s3Area) nameOf(of shelf, execution idem.ExecutionID) string {
	return s.keyPrefix() + of.folderPath() + "/" + string(execution)
}

func (s s3Area) writeFrames(ctx context.Context, of shelf, batch []*unwritten) {
	var all sync.WaitGroup
	defer all.Wait()
	turns := make(chan struct{}, maxPuts)
	for _, u := range batch {
		turns <- struct{}{}
		all.Go(func() {
			defer func() { <-turns }()
			u.err = s.putObject(ctx, s.nameOf(of, u.at.Execution), u.frame)
		})
	}
}

func (s s3Area) readFrame(ctx context.Context, of shelf, execution idem.ExecutionID) ([]byte, error) {
	b, err := s.getObject(ctx, s.nameOf(of, execution))
	if err != nil {
		return nil, err
	}
	sealed, ok := decodeFrame(execution, b)
	if !ok {
		return nil, ErrNotKept
	}
	return sealed, nil
}

func (s s3Area) hasFrame(ctx context.Context, of shelf, execution idem.ExecutionID) error {
	ctx, cancel := s.requestContext(ctx)
	defer cancel()
	_, err := s.client.Load().StatObject(ctx, s.options.Bucket, s.nameOf(of, execution), minio.StatObjectOptions{})
	if minio.ToErrorResponse(err).StatusCode == http.StatusNotFound { // the answer to a HEAD has no code
		return ErrNotKept
	}
	return s.wrapError("look for a request in", err)
}

func (s s3Area) eraseFrame(ctx context.Context, of shelf, execution idem.ExecutionID) error {
	return s.removeObject(ctx, s.nameOf(of, execution))
}

func (s s3Area) removeAll(ctx context.Context, of shelf) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var failed error
	all := minio.ListObjectsOptions{Prefix: s.keyPrefix() + of.folderPath() + "/", Recursive: true}
	objects := func(yield func(minio.ObjectInfo) bool) {
		for object := range s.client.Load().ListObjectsIter(ctx, s.options.Bucket, all) {
			if object.Err != nil {
				failed = s.wrapError("list the requests in", object.Err)
				return
			}
			if !yield(object) {
				return
			}
		}
	}
	results, err := s.client.Load().RemoveObjectsWithIter(ctx, s.options.Bucket, objects, minio.RemoveObjectsOptions{})
	if err != nil {
		return s.wrapError("delete requests from", err)
	}
	for one := range results {
		if one.Err != nil && failed == nil {
			failed = s.wrapError("delete requests from", one.Err)
		}
	}
	return errors.Join(failed, s.wrapError("list the requests in", ctx.Err()))
}

func (s s3Area) noteCount(ctx context.Context, name string) error {
	return s.putObject(ctx, s.keyPrefix()+countsFolder+"/"+name, nil)
}

func (s s3Area) forgetCount(ctx context.Context, name string) error {
	return s.removeObject(ctx, s.keyPrefix()+countsFolder+"/"+name)
}

func (s s3Area) listNames(ctx context.Context, folder string) (names []string, err error) {
	prefix := s.keyPrefix() + folder + "/"
	for object := range s.client.Load().ListObjectsIter(ctx, s.options.Bucket,
		minio.ListObjectsOptions{Prefix: prefix}) {
		if object.Err != nil {
			return nil, s.wrapError("list the requests in", object.Err)
		}
		names = append(names, path.Base(strings.TrimSuffix(object.Key, "/")))
	}
	return names, s.wrapError("list the requests in", ctx.Err())
}
