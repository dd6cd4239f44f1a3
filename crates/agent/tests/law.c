/* The law of bpf/window_law.h as a program: settings and the first look on standard input, then a
 * look a line; prints window, room and phase for each. Driven by law.rs. */
#include <stdio.h>
#include "../bpf/window_law.h"

static int next(u64 *now, struct look *look)
{
	return scanf("%llu %u %u %llu %llu %llu %llu %llu", now, &look->received, &look->copied,
		     &look->out_of_order, &look->promised, &look->rtt_us, &look->own,
		     &look->segment) == 8;
}

int main(void)
{
	struct law_settings set;
	struct look look;
	struct law law;
	u64 now;

	while (scanf("%llu %llu %llu %llu %llu %llu %llu", &set.threshold, &set.threshold_us,
		     &set.step, &set.least, &set.most, &set.keep, &set.hold_round_trips) == 7) {
		int count;

		if (scanf("%d", &count) != 1 || !next(&now, &look))
			return 1;
		law_new(&law, &set, now, &look);
		while (count--) {
			if (!next(&now, &look))
				return 1;
			law_acknowledge(&law, &set, now, &look);
			printf("%llu %llu %u\n", law.window, law.room, law.phase);
		}
	}
	return 0;
}
