#!/usr/bin/env bash
# Guess: a lock that a PHP process took stays its own until it releases it or ends; a child that it
#   forks and that ends changes nothing, as with a file that both have open.
# Software: Debian package php-symfony-lock 5.4.53+dfsg-0+deb12u1, FlockStore, defaults; PHP 8.2.36
#   (needs Debian 12 and php8.2-cli, whose pcntl is built in).
# Seen: the child's end releases it: the copy of the lock object is destroyed and unlocks the file
#   that both share. The parent's isAcquired() stays true, and another process gets the lock. A
#   lock made with autoRelease false stays.
# Why it matters: a worker that forks once while it handles an order's event (for a mail, a report)
#   works on without its lock, and cannot tell.
set -euo pipefail
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
apt-get download php-symfony-lock=5.4.53+dfsg-0+deb12u1 php-psr-log php-symfony-polyfill-php80 php-symfony-deprecation-contracts \
  >log 2>&1 || { cat log; exit 2; }
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
timeout 50 php main.php
