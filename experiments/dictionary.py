"""The Census Bureau's data dictionary of the 2018 person file, as far as the paper's columns go.

Codes are written as whole numbers without leading zeros, as they come out of the file. Nullable
means that the dictionary has a 'not applicable', which the file leaves empty. Of the long lists
(occupations, places of birth, areas) a code that is not here is counted as "other": the lists are
public, and so is this rule. Numbers outside their bounds are taken for the nearest bound.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from private_gsd import Categorical, Integer

if TYPE_CHECKING:
    from private_gsd import Column

OTHER = "other"
ABROAD = "abroad"


class Codes(NamedTuple):
    """A categorical column: its codes, and whether a row may have none."""

    codes: tuple[str, ...]
    nullable: bool = False


class Bounds(NamedTuple):
    """A numeric column: its least and greatest value, and whether a row may have none."""

    lower: int
    upper: int
    nullable: bool = False


def _numbers(text: str) -> tuple[str, ...]:
    """Codes of a text with ranges, as in "101-110 300"; leading zeros go."""
    found = []
    for word in text.split():
        first, _, last = word.partition("-")
        found += [str(code) for code in range(int(first), int(last or first) + 1)]
    return tuple(found)


def _some(text: str, nullable: bool = False) -> Codes:
    return Codes(_numbers(text), nullable)


# Public use microdata areas of California, 2010: 265 of them.
PUMAS = _numbers("""
101-110 300 701-702 1100 1301-1309 1500 1700 1901-1907 2300 2500 2901-2905 3100 3300 3701-3769 3900
4101-4102 4701-4702 5301-5303 5500 5700 5901-5918 6101-6103 6501-6515 6701-6712 7101-7115 7301-7322
7501-7507 7701-7704 7901-7902 8101-8106 8301-8303 8501-8514 8701-8702 8900 9501-9503 9701-9703
9901-9904 10100 10701-10703 11101-11106 11300
""")
# The counties with which the areas' numbers begin. Areas of work are told apart by them alone.
COUNTIES = tuple(dict.fromkeys(str(int(area) // 100) for area in PUMAS))

# Occupations, by the codes of 2018.
OCCUPATIONS = _numbers("""
10 20 40 51-52 60 101-102 110 120 135-137 140 150 160 205 220 230 300 310 335 340 350 360 410 420
425 440 500 510 520 530 540 565 600 630 640 650 700 705 710 725-726 735 750 800 810 820 830 845 850
860 900 910 930 940 960 1005-1007 1010 1021-1022 1031-1032 1050 1065 1105-1106 1108 1200 1220 1240
1305-1306 1310 1320 1340 1350 1360 1400 1410 1420 1430 1440 1450 1460 1520 1530 1541 1545 1551 1555
1560 1600 1610 1640 1650 1700 1710 1720 1745 1750 1760 1800 1821-1822 1825 1840 1860 1900 1910 1920
1935 1970 1980 2001-2006 2011-2016 2025 2040 2050 2060 2100 2105 2145 2170 2180 2205 2300 2310 2320
2330 2350 2360 2400 2435 2440 2545 2555 2600 2631-2636 2640 2700 2710 2721-2723 2740 2751-2752 2755
2770 2805 2810 2825 2830 2840 2850 2861-2862 2865 2905 2910 2920 3000 3010 3030 3040 3050 3090 3100
3110 3120 3140 3150 3160 3200 3210 3220 3230 3245 3250 3255-3256 3258 3261 3270 3300 3310 3321-3324
3330 3401-3402 3421-3424 3430 3500 3515 3520 3545 3550 3601-3603 3605 3610 3620 3630 3640 3645-3649
3655 3700 3710 3720 3725 3740 3750 3801-3802 3820 3840 3870 3900 3910 3930 3940 3945-3946 3960 4000
4010 4020 4030 4040 4055 4110 4120 4130 4140 4150 4160 4200 4210 4220 4230 4240 4251-4252 4255 4330
4340 4350 4400 4420 4435 4461 4465 4500 4510 4521-4522 4525 4530 4540 4600 4621-4622 4640 4655 4700
4710 4720 4740 4750 4760 4800 4810 4820 4830 4840 4850 4900 4920 4930 4940 4950 4965 5000 5010 5020
5040 5100 5110 5120 5140 5150 5160 5165 5220 5230 5240 5250 5260 5300 5310 5320 5330 5340 5350 5360
5400 5410 5420 5500 5510 5521-5522 5530 5540 5550 5560 5600 5610 5630 5710 5720 5730 5740 5810 5820
5840 5850 5860 5900 5910 5920 5940 6005 6010 6040 6050 6115 6120 6130 6200 6210 6220 6230 6240 6250
6260 6305 6330 6355 6360 6400 6410 6441-6442 6460 6515 6520 6530 6540 6600 6660 6700 6710 6720 6730
6740 6765 6800 6825 6835 6850 6950 7000 7010 7020 7030 7040 7100 7120 7130 7140 7150 7160 7200 7210
7220 7240 7260 7300 7315 7320 7330 7340 7350 7360 7410 7420 7430 7510 7540 7560 7610 7640 7700 7720
7730 7740 7750 7800 7810 7830 7840 7850 7855 7905 7925 7950 8000 8025 8030 8040 8100 8130 8140 8225
8250 8255-8256 8300 8310 8320 8335 8350 8365 8450 8465 8500 8510 8530 8540 8555 8600 8610 8620 8630
8640 8650 8710 8720 8730 8740 8750 8760 8800 8810 8830 8850 8910 8920 8930 8940 8950 8990 9005 9030
9040 9050 9110 9121-9122 9130 9141-9142 9150 9210 9240 9265 9300 9310 9350 9365 9410 9415 9430 9510
9570 9600 9610 9620 9630 9640 9645 9650 9720 9760 9800 9810 9825 9830 9920
""")
# Places of birth: states, then countries.
BIRTHPLACES = _numbers("""
1-2 4-6 8-13 15-42 44-51 53-56 60 66 69 72 78 100 102-106 108-110 116-120 126-130 132 134 136-140
142 147-152 154 156-169 200 202-203 205-219 222-224 226 228-229 231 233 235-236 238-240 242-243
245-249 253-254 300-301 303 310-316 321 323-324 327-330 332-333 338-341 343-344 360-365 368-370
372-374 399-400 407-408 412 414 416-417 420-421 423 425 427 429-430 436 440 442 444 447-449 451
453-454 456-457 459-464 467-469 501 508 511-512 515 523 527 554
""")

NUMERIC = {
    "AGEP": Bounds(0, 99),
    "INTP": Bounds(-9999, 999_999, nullable=True),
    "JWMNP": Bounds(1, 200, nullable=True),
    "JWRIP": Bounds(1, 10, nullable=True),
    "PINCP": Bounds(-19_998, 4_209_995, nullable=True),
    "POVPIP": Bounds(0, 501, nullable=True),
    "SEMP": Bounds(-10_000, 999_999, nullable=True),
    "WAGP": Bounds(0, 999_999, nullable=True),
    "WKHP": Bounds(1, 99, nullable=True),
}
CATEGORICAL = {
    "ANC": _some("1-4 8"),
    "CIT": _some("1-5"),
    "COW": _some("1-9", True),
    "DEAR": _some("1-2"),
    "DEYE": _some("1-2"),
    "DIS": _some("1-2"),
    "DREM": _some("1-2", True),
    "ESP": _some("1-8", True),
    "ESR": _some("1-6", True),
    "FER": _some("1-2", True),
    "FOCCP": _some("0-1"),
    "GCL": _some("1-2", True),
    "JWTR": _some("1-12", True),
    "MAR": _some("1-5"),
    "MIG": _some("1-3", True),
    "MIL": _some("1-4", True),
    "NATIVITY": _some("1-2"),
    "PUBCOV": _some("1-2"),
    "RAC1P": _some("1-9"),
    "RELP": _some("0-17"),
    "SCHL": _some("1-24", True),
    "SEX": _some("1-2"),
    "WAOB": _some("1-8"),
    "OCCP": Codes((*OCCUPATIONS, OTHER), True),
    "POBP": Codes((*BIRTHPLACES, OTHER)),
    "POWPUMA": Codes((*COUNTIES, ABROAD, OTHER), True),
    "PUMA": Codes((*PUMAS, OTHER)),
}


def described(name: str) -> Column:
    """What the dictionary says of a column."""
    if name in NUMERIC:
        bounds = NUMERIC[name]
        return Integer(name, lower=bounds.lower, upper=bounds.upper, nullable=bounds.nullable)
    codes = CATEGORICAL[name]
    return Categorical(name, values=codes.codes, nullable=codes.nullable)
