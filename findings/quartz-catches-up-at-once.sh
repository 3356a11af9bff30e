#!/usr/bin/env bash
# Guess: a job of Quartz that may not run beside itself (@DisallowConcurrentExecution) and is due each 300 ms
#   leaves out the runs that fall into one that takes 3 s; or there is one run for all of them.
# Software: Debian packages libquartz2-java 2.3.2-4 and libslf4j-java 1.7.32-1 (needs Debian 12 and a JDK 17),
#   defaults but for the threads.
# Seen: all of them follow, one behind the other within milliseconds. Runs that are late by less than a minute
#   (misfireThreshold) are no misfires: they are kept, however many. With a threshold of 100 ms they are
#   left out.
# Why it matters: a poll or a reminder that once waits for a slow service for 50 s calls it as many times as it
#   was due, without a pause, as soon as it is back.
set -euo pipefail
dir=$(mktemp -d); chmod 755 "$dir"; trap 'rm -rf "$dir"' EXIT; cd "$dir"
apt-get download libquartz2-java=2.3.2-4 libslf4j-java=1.7.32-1 >log 2>&1 || { cat log; exit 2; }
for package in *.deb; do dpkg -x "$package" .; done
cat > Main.java <<'JAVA'
import static org.quartz.JobBuilder.newJob;
import static org.quartz.SimpleScheduleBuilder.simpleSchedule;
import static org.quartz.TriggerBuilder.newTrigger;

import java.util.Properties;
import java.util.concurrent.ConcurrentLinkedQueue;
import org.quartz.DisallowConcurrentExecution;
import org.quartz.Job;
import org.quartz.JobExecutionContext;
import org.quartz.Scheduler;
import org.quartz.impl.StdSchedulerFactory;

public class Main {
    static final ConcurrentLinkedQueue<Long> starts = new ConcurrentLinkedQueue<>();

    @DisallowConcurrentExecution
    public static class Poll implements Job {
        public void execute(JobExecutionContext context) {
            starts.add(System.nanoTime());
            if (starts.size() == 1) {
                try {
                    Thread.sleep(3000);
                } catch (InterruptedException e) {
                    throw new IllegalStateException(e);
                }
            }
        }
    }

    /** Returns how many runs began within 200 ms behind the one that took 3 s. */
    static long behind(String threshold) throws Exception {
        starts.clear();
        Properties settings = new Properties();
        settings.put("org.quartz.scheduler.instanceName", threshold);
        settings.put("org.quartz.scheduler.skipUpdateCheck", "true");
        settings.put("org.quartz.threadPool.class", "org.quartz.simpl.SimpleThreadPool");
        settings.put("org.quartz.threadPool.threadCount", "2");
        settings.put("org.quartz.jobStore.misfireThreshold", threshold);
        Scheduler scheduler = new StdSchedulerFactory(settings).getScheduler();
        scheduler.scheduleJob(newJob(Poll.class).build(), newTrigger().startNow()
            .withSchedule(simpleSchedule().withIntervalInMilliseconds(300).repeatForever()).build());
        scheduler.start();
        Thread.sleep(4500);
        scheduler.shutdown(true);
        long slow = starts.remove();
        long first = starts.peek();
        if (first - slow < 2_900_000_000L) {
            System.out.println("the slow run did not hold up the others");
            System.exit(1);
        }
        return starts.stream().filter(start -> start - first < 200_000_000L).count();
    }

    public static void main(String[] args) throws Exception {
        long kept = behind("60000"), left = behind("100");
        System.out.println("quartz 2.3.2: due each 300 ms, the first run takes 3 s: " + kept + " runs within 200 ms behind it");
        System.out.println("with a misfireThreshold of 100 ms: " + left);
        System.exit(kept >= 8 && left <= 2 ? 0 : 1);
    }
}
JAVA
java=usr/share/java
timeout 50 java -cp $java/quartz2.jar:$java/slf4j-api.jar:$java/slf4j-nop.jar Main.java
