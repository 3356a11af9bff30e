package embedded

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"go.etcd.io/etcd/etcdutl/v3/snapshot"
	"go.uber.org/zap"
)

// bump is by how much at least the revision grows when a snapshot is restored: more than can have
// been written since it was made.
const bump = 1_000_000_000

// RestoreOptions say what is restored, and where.
type RestoreOptions struct {
	File string // a snapshot
	Dir  string // of the embedded etcd, as in Options; no process may use it
	// Replace moves data that is in Dir out of the way. Without it such data is an error.
	Replace bool
	Now     time.Time
}

// Restored is the result of Restore.
type Restored struct {
	Revision int64  // the next fencing token is larger
	Kept     string // the folder to which the previous data was moved; "" if there was none
}

// Restore makes the embedded etcd's data anew from a snapshot. It changes nothing before the new
// data is whole. Fencing tokens are revisions, so the revision goes up to beyond every one that was
// given out: tokens grow, also after a second restore of one snapshot.
func Restore(o RestoreOptions) (Restored, error) {
	lock, err := prepareDir(o.Dir)
	if err != nil {
		return Restored{}, err
	}
	defer lock.Close()
	member := filepath.Join(o.Dir, "member")
	if _, err := os.Stat(member); err == nil && !o.Replace {
		return Restored{}, fmt.Errorf("%s has data; --replace moves it aside and restores the backup", o.Dir)
	}
	fresh := o.Dir + ".restoring"
	if err := os.RemoveAll(fresh); err != nil { // of an interrupted attempt
		return Restored{}, fmt.Errorf("remove what an earlier attempt has left: %w", err)
	}
	defer os.RemoveAll(fresh)
	alone := Member{memberName, defaultPeer}
	revision, err := restoreMember(o.File, fresh, alone, []Member{alone}, o.Now)
	if err != nil {
		return Restored{}, err
	}
	done := Restored{Revision: revision}
	old := o.Dir + ".before-" + o.Now.UTC().Format("20060102T150405.000000Z")
	switch err := os.Rename(member, old); {
	case err == nil:
		done.Kept = old
	case !errors.Is(err, os.ErrNotExist):
		return Restored{}, fmt.Errorf("move the data before out of the way: %w", err)
	}
	if err := os.Rename(filepath.Join(fresh, "member"), member); err != nil {
		return Restored{}, errors.Join(fmt.Errorf("put the restored data into its place: %w", err),
			putBack(done.Kept, member))
	}
	return done, nil
}

func putBack(kept, member string) error {
	if kept == "" {
		return nil
	}
	return os.Rename(kept, member)
}

// Member is one member of an etcd cluster.
type Member struct {
	Name    string // as etcd's --name
	PeerURL string // where the other members reach it
}

// ParseMembers reads NAME=URL.
func ParseMembers(texts []string) ([]Member, error) {
	var members []Member
	seen := map[string]bool{}
	for _, text := range texts {
		name, peer, _ := strings.Cut(text, "=")
		u, err := url.Parse(peer)
		switch {
		case err != nil, u.Scheme != "http" && u.Scheme != "https", u.Port() == "", strings.Trim(u.Path, "/") != "":
			return nil, fmt.Errorf("%q is no member: write NAME=URL, as etcd-0=https://10.0.0.1:2380, with the URL "+
				"at which the other members reach it", text)
		case name == "", name != filepath.Base(name), strings.HasPrefix(name, "."):
			return nil, fmt.Errorf("%q is no member: its name is the name of a folder, too", text)
		case seen[name], seen[peer]:
			return nil, fmt.Errorf("%q: another member has this name or URL", text)
		}
		seen[name], seen[peer] = true, true
		members = append(members, Member{name, peer})
	}
	if len(members) == 0 {
		return nil, errors.New("name the members of the new cluster, NAME=URL for each")
	}
	return members, nil
}

// Export makes the data of an etcd cluster with these members out of the embedded etcd's, a folder
// for each below to. The embedded etcd must not run, so that nothing is recorded that the new
// cluster lacks; its data is not changed. It returns the new cluster's revision.
func Export(ctx context.Context, from Options, to string, members []Member, now time.Time) (revision int64, err error) {
	switch s, err := Look(from.Dir); {
	case errors.Is(err, ErrInUse):
		return 0, fmt.Errorf("data directory %s is %w: stop it first, or what it records meanwhile is lost to the "+
			"new cluster", from.Dir, err)
	case err != nil:
		return 0, err
	case s.Size == 0:
		return 0, fmt.Errorf("there is no embedded etcd in %s; set data_dir to where it is", from.Dir)
	}
	if err := os.MkdirAll(to, 0o700); err != nil {
		return 0, fmt.Errorf("make the folder of the export: %w", err)
	}
	for _, m := range members {
		if _, err := os.Stat(filepath.Join(to, m.Name)); err == nil {
			return 0, fmt.Errorf("%s is there already; remove it, or export to another folder",
				filepath.Join(to, m.Name))
		}
	}
	file := filepath.Join(to, "export.db")
	defer os.Remove(file)
	if _, err := Save(file, func(w io.Writer) error { return dumpSnapshot(ctx, from, w) }); err != nil {
		return 0, err
	}
	for _, m := range members {
		if revision, err = restoreMember(file, filepath.Join(to, m.Name), m, members, now); err != nil {
			return 0, err
		}
	}
	return revision, nil
}

// dumpSnapshot starts the embedded etcd for as long as it takes to copy it.
func dumpSnapshot(ctx context.Context, from Options, w io.Writer) error {
	s, err := Start(from)
	if err != nil {
		return err
	}
	defer s.Close()
	r, err := s.Snapshot(ctx)
	if err != nil {
		return err
	}
	defer r.Close()
	if _, err := io.Copy(w, r); err != nil {
		return fmt.Errorf("copy the embedded etcd: %w", err)
	}
	return s.Close()
}

// restoreMember makes the data of one member of a new cluster from a snapshot.
func restoreMember(file, dir string, m Member, all []Member, now time.Time) (revision int64, err error) {
	f, err := os.Open(file)
	if err != nil {
		return 0, fmt.Errorf("read the backup: %w", err)
	}
	defer f.Close()
	if _, err := verifyChecksum(f); err != nil {
		return 0, err
	}
	snapshots := snapshot.NewV3(zap.NewNop())
	status, err := snapshots.Status(file)
	if err != nil {
		return 0, fmt.Errorf("read the backup: %w", err)
	}
	// The time is used because one snapshot may be restored twice, with tokens given out between.
	// No etcd writes a million revisions a second.
	revision = max(status.Revision+bump, now.UnixMicro())
	var cluster []string
	for _, member := range all {
		cluster = append(cluster, member.Name+"="+member.PeerURL)
	}
	err = snapshots.Restore(snapshot.RestoreConfig{
		SnapshotPath: file, OutputDataDir: dir, Name: m.Name, PeerURLs: []string{m.PeerURL},
		InitialCluster: strings.Join(cluster, ","), InitialClusterToken: "hooklock",
		RevisionBump: uint64(revision - status.Revision), MarkCompacted: true,
	})
	if err != nil {
		return 0, fmt.Errorf("restore into %s: %w", dir, err)
	}
	return revision, nil
}
