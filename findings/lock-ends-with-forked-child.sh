#!/usr/bin/env bash
# Guess: a lock that a process took stays its own until it releases it or ends; a child that it
#   forks and that ends at once changes nothing.
# Software: Debian packages php-symfony-lock 5.4.53+dfsg-0+deb12u1 (FlockStore), python3-filelock
#   3.9.0-1+deb12u1 and libfile-nfslock-perl 1.29-2, defaults (needs Debian 12 with php8.2-cli, its
#   Python and Perl).
# Seen: in all three the child's end releases it: the copy of the lock object is destroyed, and
#   unlocks the file that both share. Another process gets it, while isAcquired() and is_locked of
#   the first two say that the parent has it. Symfony's stays if it was made with autoRelease
#   false.
# Why it matters: a worker that forks once while it handles an order's event (for a mail, a report)
#   works on without its lock, and cannot tell.
set -euo pipefail
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
apt-get download php-symfony-lock=5.4.53+dfsg-0+deb12u1 php-psr-log php-symfony-polyfill-php80 php-symfony-deprecation-contracts \
  python3-filelock=3.9.0-1+deb12u1 libfile-nfslock-perl=1.29-2 >log 2>&1 || { cat log; exit 2; }
for package in *.deb; do dpkg -x "$package" .; done
cat > main.php <<'PHP'
<?php
use Symfony\Component\Lock\LockFactory;
use Symfony\Component\Lock\Store\FlockStore;

set_include_path(__DIR__.'/usr/share/php');
spl_autoload_register(function (string $class): void {
    $paths = ['Symfony\\Component\\Lock\\' => 'Symfony/Component/Lock/', 'Psr\\Log\\' => 'Psr/Log/'];
    foreach ($paths as $prefix => $path) {
        if (str_starts_with($class, $prefix)) {
            require $path.str_replace('\\', '/', substr($class, strlen($prefix))).'.php';
        }
    }
});

function makeLock(string $name, bool $autoRelease = true) {
    return (new LockFactory(new FlockStore(__DIR__)))->createLock($name, 300, $autoRelease);
}

function takesIt(string $name): bool { // in a process of its own
    $pid = pcntl_fork();
    if (0 === $pid) {
        pcntl_exec('/usr/bin/php', [__FILE__, $name]);
    }
    pcntl_waitpid($pid, $status);
    return 0 === pcntl_wexitstatus($status);
}

if ($argc > 1) {
    exit(makeLock($argv[1])->acquire() ? 0 : 1);
}
$seen = [];
foreach (['default' => true, 'autoRelease false' => false] as $name => $autoRelease) {
    $mine = makeLock($name, $autoRelease);
    $mine->acquire();
    $before = takesIt($name);
    $pid = pcntl_fork();
    if (0 === $pid) {
        exit(0);
    }
    pcntl_waitpid($pid, $status);
    $seen[$name] = [$before, $mine->isAcquired(), takesIt($name)];
    printf("symfony/lock 5.4.53, %s: another process gets it: %s; after a child has ended: %s, while isAcquired() says %s\n",
        $name, ...array_map('json_encode', [$before, $seen[$name][2], $seen[$name][1]]));
}
exit($seen === ['default' => [false, true, true], 'autoRelease false' => [false, true, false]] ? 0 : 1);
PHP
cat > main.py <<'PY'
import os
import subprocess
import sys

import filelock


def other_process_takes_it():
    code = "import filelock; filelock.FileLock('order-7.lock').acquire(timeout=0)"
    return subprocess.run([sys.executable, "-c", code], stderr=subprocess.DEVNULL).returncode == 0


mine = filelock.FileLock("order-7.lock")
mine.acquire()
before = other_process_takes_it()
child = os.fork()
if child == 0:
    sys.exit(0)
os.waitpid(child, 0)
after = other_process_takes_it()
print(f"filelock 3.9.0: another process gets it: {before}; after a child has ended: {after}, while is_locked says {mine.is_locked}")
os._exit(0 if (before, after, mine.is_locked) == (False, True, True) else 1)
PY
cat > main.pl <<'PL'
use strict;
use warnings;
use Fcntl qw(LOCK_EX LOCK_NB);
use File::NFSLock;

sub take { return File::NFSLock->new({ file => "order-8", lock_type => LOCK_EX | LOCK_NB }) }

sub other_process_takes_it {
    my $child = fork;
    if (!$child) { exec $^X, $0, "other" }
    waitpid $child, 0;
    return $? == 0 ? "yes" : "no";
}

if (@ARGV) { exit(take() ? 0 : 1) }
my $mine = take();
my $before = other_process_takes_it();
my $child = fork;
if (!$child) { exit 0 }
waitpid $child, 0;
my $after = other_process_takes_it();
print "File::NFSLock 1.29: another process gets it: $before; after a child has ended: $after\n";
exit($mine && "$before $after" eq "no yes" ? 0 : 1);
PL
code=0
timeout 50 php main.php || code=1
PYTHONPATH=usr/lib/python3/dist-packages timeout 50 /usr/bin/python3 -u main.py || code=1
PERL5LIB=usr/share/perl5 timeout 50 perl main.pl || code=1
exit $code
