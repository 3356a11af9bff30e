// Package predecessor ends the sessions of processes that have died on this machine with the same
// data directory, and records what their services had answered. On an etcd cluster the locks of a
// killed process would otherwise stay closed until its lease expires, and on any etcd an execution
// whose record was not committed would be unknown.
//
// Each process has a small file there and a lock on it (flock(2)) for as long as it lives, however
// it ends; a process that is frozen still has it. The head of the file names the sessions of the
// process before they can hold a lock in etcd. A file that can be locked is a dead process's. To
// etcd the end of its session is that of a lease that expires, which may happen at any time, and
// which test/model lets happen at any step: the protocol needs no other transaction for it, and
// what the dead process has sent and etcd has not applied yet fails as after an expiry.
//
// Behind the head are slots. Before an end is sent to etcd it is written into one: see Proof. What
// a slot of a dead process says is true for ever, so it may be read at any time, and again. It is
// used where etcd does not know the end: the lock of one of the dead process's sessions is settled,
// before the session ends; a record that says unknown is corrected. A lock that another process has
// taken over is left to that one, which may be calling the service now.
//
// The session of a process that lives is never ended, because a lock counts only if it is the lock
// of the file that the process itself has made:
//
//   - The head names the boot (boot_id in random(4)). Another machine has another one, and so has a
//     clone of a disk and a backup that is restored elsewhere. The machine ID would not do: a clone
//     keeps it. This machine after a reboot is not told apart from a clone, and waits for the
//     lease.
//   - The head names the device and the inode of the file. A copy that is made while its owner
//     lives, also a snapshot of the file system, has another of the two: as long as the owner has
//     its file open, neither number is given to another file.
//   - Processes in containers with one volume, and PID namespaces of their own, have one kernel,
//     which has one table of locks. No PID is looked at.
//   - The file system must be one of those whose locks are that kernel's own. NFS, SMB, 9p, FUSE
//     and file systems that machines share are not among them.
//   - The head names the etcd cluster and the prefix, and a session's name is random and is never
//     used again. So is the session that is ended always one of the dead process.
//
// Of a machine that is copied with its memory, each copy has the same process with the same
// session, the same boot ID and the same file: none can be told from the others, here or in etcd.
package predecessor
