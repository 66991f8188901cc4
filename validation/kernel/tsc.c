/* Prints the rate of this machine's time-stamp counter, in kHz.
 *
 * An emulated CPU shows its guest this counter. On a busy machine the guest's own calibration can be
 * wrong by any factor, for its loops are interrupted; it is told the rate instead.
 */
#include <stdint.h>
#include <stdio.h>
#include <time.h>
#include <x86intrin.h>

struct reading {
	int64_t ns;
	uint64_t ticks;
};

static int64_t now_ns(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC_RAW, &time);
	return time.tv_sec * INT64_C(1000000000) + time.tv_nsec;
}

/* Of many readings the one that was interrupted least. */
static struct reading read_both(void)
{
	struct reading best = { 0, 0 };
	int64_t least = INT64_MAX;

	for (int i = 0; i < 1000; i++) {
		int64_t before = now_ns();
		uint64_t ticks = __rdtsc();
		int64_t took = now_ns() - before;

		if (took < least) {
			least = took;
			best = (struct reading){ before + took / 2, ticks };
		}
	}
	return best;
}

int main(void)
{
	struct reading first = read_both();
	struct timespec pause = { 0, 100 * 1000 * 1000 };

	nanosleep(&pause, NULL);
	struct reading last = read_both();

	printf("%.0f\n", (last.ticks - first.ticks) * 1e6 / (last.ns - first.ns));
	return 0;
}
