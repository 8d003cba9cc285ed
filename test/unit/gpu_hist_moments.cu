/*
 * gpu_hist_moments.cu
 *	  Tests of deviations (form ACCUM) in the fewest words.
 *
 * They cover carries from the top words to the limbs in device memory, a count of rows that shares
 * the word of the deviations, and the digits themselves.
 */
#include <algorithm>

#include "operators/gpu_hash.h"

#include "gpu_hist_run.h"
#include "hist_moments.cuh"

static const SlotCase count = {MONOID_COUNT, GPUAGG_VALUE_I8},
					  accum = {MONOID_ACCUM_F64, GPUAGG_VALUE_F64},
					  least = {MONOID_MIN_F64, GPUAGG_VALUE_F64},
					  greatest = {MONOID_MAX_F64, GPUAGG_VALUE_F64};

/* Rows of a test.  All slots read the column x. */
struct MomentRows
{
	std::vector<int32_t> bin;
	std::vector<double> x;
};

/*
 * Adds the rows twice to states and checks these: by AUTO, by SHARED, and by bins of two keys.  On
 * an H100 or a similar device a bin must have `words` words, if that is not 0.
 */
static void
check_moments(const MomentRows &rows, int64_t nbins, const std::vector<SlotCase> &slots, int words,
			  const char *what)
{
	DeviceArray<int32_t> bin(rows.bin);
	DeviceArray<double> x(rows.x);
	BinKeys keys(rows.bin, nbins);
	HistExpected expect(slots, nbins);
	unsigned long long too_great = 0;
	const DeviceFacts *facts;

	STATUS_MUST(gpuagg_device_facts(&facts));
	for (size_t s = 0; s < slots.size(); s++)
		for (size_t i = 0; i < 2 * rows.x.size(); i++)
			if (rows.bin[i % rows.x.size()] >= nbins)
				too_great += s == 0;
			else if (rows.bin[i % rows.x.size()] >= 0)
				expect.step(s, rows.bin[i % rows.x.size()],
							Input{as_bits(rows.x[i % rows.x.size()]), 0});
	for (int way = 0; way < 3; way++)
	{
		GpuaggHistStrategy strategy = way == 1 ? GPUAGG_HIST_SHARED : GPUAGG_HIST_AUTO;
		char text[200];
		HistActual actual(slots, nbins, 16);
		GpuaggHist h = GpuaggHist();
		GpuaggHistChoice choice;

		h.bins.kind = GPUAGG_BIN_INDEX;
		h.bins.ncolumns = 1;
		h.bins.column[0] = {bin.get(), nullptr, GPUAGG_VALUE_I32};
		h.bins.nbins = nbins;
		if (way == 2)
			h.bins = keys.bins;
		expect.outside = way == 2 ? 2 * keys.outside : too_great;
		h.nslots = (int) slots.size();
		h.nrows = (int64_t) rows.x.size();
		h.strategy = strategy;
		for (size_t s = 0; s < slots.size(); s++)
		{
			h.slot[s].op = slots[s].op;
			h.slot[s].x = slots[s].op == MONOID_COUNT ?
				GpuaggColumn() :
				GpuaggColumn{x.get(), nullptr, GPUAGG_VALUE_F64};
		}
		actual.attach(h);
		STATUS_MUST(gpuagg_hist_choose(&h, &choice));
		if (words && facts->smem_per_block == 232448)
			CHECK(choice.passes == 1 && choice.bin_bytes == 4 * words &&
					  (strategy != GPUAGG_HIST_AUTO || choice.together),
				  "%s, way %d: %d passes, %d bytes a bin, together: %d", what, way, choice.passes,
				  choice.bin_bytes, choice.together);
		hist_update(h);
		hist_update(h);
		snprintf(text, sizeof(text), "%s, way %d", what, way);
		actual.check(expect, text);
	}
}

/* Returns which rows the device samples to place the window. */
static std::vector<bool>
sampled_rows(size_t n)
{
	const uint64_t samples = 4096;
	std::vector<bool> is(n);

	for (uint64_t i = 0; i < samples; i++)
	{
		uint64_t from = n * i / samples, to = n * (i + 1) / samples;

		is[from + (uint64_t) ((unsigned __int128) gpuagg_mix64(i) * (to - from) >> 64)] = true;
	}
	return is;
}

/*
 * Most rows are in one bin and have the greatest magnitude that the window takes: three bits above
 * that of the sample.  Windows are widest for few rows; then the top word of x is full after 64
 * rows, that of x * x after 1024.
 */
GPU_TEST(hist_moments_spill)
{
	const size_t n = gpu_test_quick() ? 20011 : 300007;
	const int64_t nbins = 5682;
	std::vector<bool> sampled = sampled_rows(n);

	for (int signs = 0; signs < 3; signs++)
	{
		MomentRows rows = {std::vector<int32_t>(n), std::vector<double>(n)};

		for (size_t i = 0; i < n; i++)
		{
			double v = sampled[i] ? 1 : 0x1.fffffffffffffp3 - (double) (i % 8) * 0x1p-49;
			bool negative = signs == 1 || (signs == 2 && i % 1000 < 700);

			rows.x[i] = negative ? -v : v;
			rows.bin[i] = i % 100 == 0 ? (int32_t) (i % (size_t) nbins) : 7;
		}
		check_moments(rows, nbins, {accum}, 10,
					  signs == 0     ? "positive" :
						  signs == 1 ? "negative" :
									   "of both signs");
	}
}

/* Ways by which the same rows reach other kernels than the fast one, or several passes. */
enum MomentWay
{
	MOMENTS_NULLABLE, /* the column may have NULLs: the general kernel */
	MOMENTS_PASSES,   /* more bins than fit */
	MOMENTS_NULLABLE_PASSES,
	MOMENTS_PAIRED_PASSES, /* bins of two keys, which the fast kernel computes */
	MOMENTS_TILES,
	MOMENT_WAYS
};

/* Adds the rows to states in one way and checks these. */
static void
check_moments_way(const MomentRows &rows, int64_t nbins, MomentWay way, const char *what)
{
	const std::vector<SlotCase> slots = {accum};
	bool nullable = way == MOMENTS_NULLABLE || way == MOMENTS_NULLABLE_PASSES;
	DeviceArray<int32_t> bin(rows.bin);
	DeviceArray<double> x(rows.x);
	DeviceArray<uint8_t> valid(std::vector<uint8_t>(rows.x.size() / 8 + 1, 0xff));
	DeviceArray<unsigned long long> undetermined(std::vector<unsigned long long>{0});
	std::vector<GpuaggProgram> host(1);
	HistExpected expect(slots, nbins);
	HistActual actual(slots, nbins, 16);
	GpuaggHist h = GpuaggHist();
	GpuaggHistChoice choice;

	BinKeys keys(rows.bin, nbins);

	for (size_t i = 0; i < rows.x.size(); i++)
		if (rows.bin[i] >= 0 && rows.bin[i] < nbins)
			expect.step(0, rows.bin[i], Input{as_bits(rows.x[i]), 0});
	expect.outside = keys.outside;
	memset((void *) host.data(), 0, sizeof(host[0]));
	host[0].steps.filter = VECTOR_NONE;
	host[0].undetermined = undetermined.get();
	DeviceArray<GpuaggProgram> program(host);

	h.bins.kind = GPUAGG_BIN_RANGE;
	h.bins.ncolumns = 1;
	h.bins.column[0] = {bin.get(), nullptr, GPUAGG_VALUE_I32};
	h.bins.extent[0] = h.bins.nbins = nbins;
	if (way == MOMENTS_PAIRED_PASSES)
		h.bins = keys.bins;
	h.nslots = 1;
	h.nrows = (int64_t) rows.x.size();
	h.strategy = way == MOMENTS_TILES ? GPUAGG_HIST_TILES : GPUAGG_HIST_SHARED;
	h.program = program.get();
	h.input_bytes = 12;
	h.slot[0].op = MONOID_ACCUM_F64;
	h.slot[0].x = {x.get(), nullable ? valid.get() : nullptr, GPUAGG_VALUE_F64};
	actual.attach(h);
	STATUS_MUST(gpuagg_hist_choose(&h, &choice));
	CHECK(choice.bin_bytes == 40, "%s, way %d: %d bytes a bin", what, way, choice.bin_bytes);
	hist_update(h);
	actual.check(expect, what);
}

/*
 * Sets row k of a part of the rows that are not in the sample.  Small digits fill the words of some
 * bins, so that a lost carry is most of the sum.  Values are in units of the window: it has 28 bits
 * above 53, as for up to a million rows.
 */
static void
carry_row(int part, size_t k, int64_t nbins, int32_t &bin, double &v)
{
	const double digit = 0x7ffffff;

	/*
	 * fills word 1 of x to 2^31 - 1; a thousand rows later word 0 carries into it, and it carries
	 * into word 2
	 */
	if (k < 31 || (k >= 1100 && k < 1117))
	{
		bin = 100 + part;
		v = k < 16 ? digit * 0x1p28 : k < 31 ? 0x1p28 : digit;
	}
	/* word 0 of x */
	else if (k < 71)
	{
		bin = 1000 + part;
		v = digit;
	}
	/* word 0 of x * x */
	else if (k < 111)
	{
		bin = 2000 + part;
		v = k % 2 ? 11585 : -11585;
	}
	else if (k % 50 == 0)
	{
		/* no bin */
		bin = k % 100 ? -1 : (int32_t) (nbins + (int64_t) (k % 3));
		return;
	}
	else
		return;
	v = ldexp(part % 2 ? -v : v, -77);
}

/*
 * Sums whose top words change between full and not full, and carries out of the other words, in
 * every kernel of deviations.
 */
GPU_TEST(hist_moments_ways)
{
	const size_t n = gpu_test_quick() ? 20011 : 300007;
	const DeviceFacts *facts;
	std::vector<bool> sampled = sampled_rows(n);

	STATUS_MUST(gpuagg_device_facts(&facts));
	if (facts->smem_per_block != 232448)
		return;
	for (int way = 0; way < MOMENT_WAYS; way++)
		for (int signs = 0; signs < 5; signs++)
		{
			const int64_t nbins = way == MOMENTS_TILES ? 5300 :
				way == MOMENTS_NULLABLE                ? 5682 :
														 11000;
			MomentRows rows = {std::vector<int32_t>(n), std::vector<double>(n)};
			char what[100];
			size_t k = 0;

			for (size_t i = 0; i < n; i++)
			{
				double v = sampled[i] ? 1 : 0x1.fffffffffffffp3 - (double) (i % 8) * 0x1p-49;
				bool negative = signs == 1 || (signs == 2 && i % 1000 < 700) ||
					(signs == 3 && i % 500 > 63 && i % 2);

				/* neighbouring rows out of the window, whose bins are in two passes */
				if (signs == 3 && i % 97 < 2)
					v = ldexp((double) (i % 7 + 1), -80);
				rows.x[i] = negative ? -v : v;
				rows.bin[i] = i % 100 == 0 ? (int32_t) (i % (size_t) nbins) :
					i % 2                  ? 7 :
											 (int32_t) nbins - 1;
				k = i % 2048 ? k : 0;
				if (signs == 4 && !sampled[i])
					carry_row((int) (i / 2048), k++, nbins, rows.bin[i], rows.x[i]);
			}
			snprintf(what, sizeof(what), "way %d, signs %d", way, signs);
			check_moments_way(rows, nbins, (MomentWay) way, what);
		}
}

/* A count that shares the word of the deviations, where some or most rows are out of the window. */
GPU_TEST(hist_moments_count)
{
	const size_t n = gpu_test_quick() ? 12007 : 300007;
	const int64_t nbins = 4058;

	for (int out = 0; out < 3; out++)
		for (bool hot : {false, true})
		{
			MomentRows rows = {std::vector<int32_t>(n), std::vector<double>(n)};
			Random r(31 + out);
			char what[100];

			for (size_t i = 0; i < n; i++)
			{
				bool outside = out == 2 ? r.below(4) != 0 : out == 1 && r.below(1000) == 0;

				rows.bin[i] = hot && r.below(3) ? 11 : (int32_t) r.below(nbins);
				rows.x[i] = ldexp(r.uniform() - 0.5, outside ? -80 : 0);
			}
			snprintf(what, sizeof(what), "out of window: %d, hot bin: %d", out, hot);
			check_moments(rows, nbins, {count, least, greatest, accum}, 14, what);
		}
}

/* The same with the slots in any order, infinities, NaN, and rows without a bin. */
GPU_TEST(hist_moments_orders)
{
	const size_t n = gpu_test_quick() ? 12007 : 300007;
	const double values[] = {NAN, INFINITY, -INFINITY, -0.0, 0x1p-1074, 1e-310, 1e100, -1e100};
	std::vector<SlotCase> slots = {count, least, greatest, accum};

	for (int order = 0; order < 4; order++)
		for (int special : {0, 1, 4, 8})
			for (int64_t nbins : {3789L, 4057L, 4058L})
			{
				MomentRows rows = {std::vector<int32_t>(n), std::vector<double>(n)};
				Random r(31 + order);
				char what[100];

				for (size_t i = 0; i < n; i++)
				{
					bool none = r.below(20) == 0;

					rows.bin[i] = none ? -1 :
						r.below(3)     ? (int32_t) (nbins - 1 - r.below(3)) :
										 (int32_t) r.below(nbins);
					rows.x[i] = r.below(8) < (uint64_t) special && rows.bin[i] % 5 ?
						values[r.below(8)] :
						r.uniform() - 0.5;
				}
				snprintf(what, sizeof(what), "order %d, special %d, %ld bins", order, special,
						 (long) nbins);
				check_moments(rows, nbins, slots, 14, what);
				std::rotate(slots.begin(), slots.begin() + 1, slots.end());
			}
}

/*
 * Few bins, whose counts have words of their own.  Windows at the least exponents, with rows below
 * them, and rows out of range.
 */
GPU_TEST(hist_moments_few)
{
	const size_t most = gpu_test_quick() ? 12007 : 300007;

	for (int exponent : {-1073, -1060, -1022, -1010, -900, 0, 400})
		for (int64_t nbins : {3L, 1000L})
			for (size_t kind = 0; kind < 4; kind++)
			{
				bool out = kind > 0;
				size_t n = kind == 2 ? 1 : kind == 3 ? 33 : most;
				MomentRows rows = {std::vector<int32_t>(n), std::vector<double>(n)};
				Random r(17 + exponent);
				char what[100];

				for (size_t i = 0; i < n; i++)
				{
					bool low = r.below(4) == 0;

					rows.bin[i] = (int32_t) r.below(nbins + nbins / 3) - (i % 50 == 0);
					rows.x[i] = ldexp(r.uniform() - 0.25, exponent);
					/* few bits, at and below the lowest bits of the window */
					if (low || (out && rows.bin[i] % 3 == 0))
						rows.x[i] = ldexp((double) r.below(8) - 2,
										  exponent - 50 - (int) r.below(low ? 20 : 60));
				}
				snprintf(what, sizeof(what), "exponent %d, %ld bins, out of window: %d, %zu rows",
						 exponent, (long) nbins, out, n);
				check_moments(rows, nbins, {count, accum}, 0, what);
				check_moments(rows, nbins, {count, greatest, accum, greatest}, 0, what);
			}
}

/* ---- digits -------------------------------------------------------------------- */

/* Cuts part[i] into digits and stores them in out[i], one value in each thread. */
template <int BITS>
static __global__ void
digits_kernel(const FixValue *part, int n, MomentDigits<BITS> *out)
{
	int i = (int) (blockIdx.x * blockDim.x + threadIdx.x);

	if (i < n)
		out[i].cut(part[i], 0, 1, 100);
}

/* Adds magnitude * 2^shift, or its negative, to a number of eight words in two's complement. */
static void
add_shifted(uint32_t (&w)[8], unsigned __int128 magnitude, bool negative, int shift)
{
	int64_t carry = 0;

	for (int i = 0; i < 8; i++)
	{
		int at = 32 * i - shift;
		uint32_t v =
			at <= -32 || at >= 128 ? 0 : (uint32_t) (at < 0 ? magnitude << -at : magnitude >> at);

		carry += negative ? (int64_t) w[i] - v : (int64_t) w[i] + v;
		w[i] = (uint32_t) carry;
		carry >>= 32;
	}
}

/*
 * Returns whether n digits are right for a number of `bits` bits: each is in its range, and their
 * sum is the number.  `shift` is the shift of the number.
 */
template <int BITS>
static bool
digits_make(const uint32_t *d, int n, int bits, unsigned __int128 magnitude, bool negative,
			int shift)
{
	uint32_t sum[8] = {0}, expect[8] = {0};
	int top = (bits - 1) / BITS;

	add_shifted(expect, magnitude, negative, shift);
	for (int k = 0; k < n; k++)
	{
		int64_t v = (int32_t) d[k], most = (int64_t) 1 << (k < top ? BITS - 1 : bits - BITS * top);

		/*
		 * a digit above the highest must be 0: the window has no word for it
		 * (hist_model_digit_words)
		 */
		if (v < -most || v > most || (k > top && v != 0))
			return false;
		add_shifted(sum, (unsigned __int128) (v < 0 ? -v : v), v < 0, BITS * k);
	}
	return memcmp(sum, expect, sizeof(sum)) == 0;
}

/* Checks the digits of values with many patterns of bits at every shift. */
template <int BITS>
static void
check_digits()
{
	typedef MomentDigits<BITS> Digits;
	const uint64_t edges[] = {0,
							  1,
							  0x1fffffffffffff,
							  0x10000000000000,
							  0x1ffffffffffffe,
							  0x18000000000000,
							  0x10000000000001,
							  0x17ffffffffffff,
							  0x7fffff,
							  0x800000,
							  0x7ffffff,
							  0x8000000,
							  0x10000000,
							  0x15555555555555,
							  0x1aaaaaaaaaaaaa,
							  0x17fffff7fffff7};
	std::vector<FixValue> parts;
	Random r(3);

	for (int shift = 0; shift <= 67; shift++)
		for (size_t i = 0; i < 2 * (sizeof(edges) / sizeof(edges[0])) + 200; i++)
		{
			FixValue f;

			f.m = i < 2 * (sizeof(edges) / sizeof(edges[0])) ?
				edges[i / 2] :
				r.below((uint64_t) 1 << (1 + r.below(53)));
			f.shift = shift;
			f.negative = i % 2;
			parts.push_back(f);
		}
	DeviceArray<FixValue> part(parts);
	DeviceArray<Digits> out(parts.size());

	digits_kernel<BITS>
		<<<(unsigned) (parts.size() / 256 + 1), 256>>>(part.get(), (int) parts.size(), out.get());
	CUDA_MUST(cudaDeviceSynchronize());

	std::vector<Digits> got = out.take();

	for (size_t i = 0; i < parts.size(); i++)
	{
		const FixValue &f = parts[i];
		int s = f.shift % BITS, t = 2 * f.shift % BITS;

		CHECK(got[i].at[0] == 1u + f.shift / BITS && got[i].at[1] == 101u + 2 * f.shift / BITS,
			  "%d bits, shift %d: first words", BITS, f.shift);
		CHECK(digits_make<BITS>(got[i].d, Digits::X, 53 + s, f.m, f.negative, s) &&
				  digits_make<BITS>(got[i].d + Digits::X, Digits::XX, 106 + t,
									(unsigned __int128) f.m * f.m, false, t),
			  "%d bits: %s%llx at shift %d", BITS, f.negative ? "-" : "", (unsigned long long) f.m,
			  f.shift);
	}
}

/*
 * Digits of values and squares at every shift: balanced, none above the highest that the window
 * has, and their sum is the number.
 */
GPU_TEST(hist_moments_digits)
{
	check_digits<24>();
	check_digits<28>();
}
