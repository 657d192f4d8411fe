-- 200 questions that an analyst of the Adult table (1994 census income) might bring, by topic.
-- Lines that exclude each other, one after the other, are measured as one group.

-- High earners by sex and age band
sex = ' Female' AND "income>50K" = ' >50K' AND age BETWEEN 17 AND 24
sex = ' Female' AND "income>50K" = ' >50K' AND age BETWEEN 25 AND 34
sex = ' Female' AND "income>50K" = ' >50K' AND age BETWEEN 35 AND 44
sex = ' Female' AND "income>50K" = ' >50K' AND age BETWEEN 45 AND 54
sex = ' Female' AND "income>50K" = ' >50K' AND age BETWEEN 55 AND 64
sex = ' Female' AND "income>50K" = ' >50K' AND age BETWEEN 65 AND 90
sex = ' Male' AND "income>50K" = ' >50K' AND age BETWEEN 17 AND 24
sex = ' Male' AND "income>50K" = ' >50K' AND age BETWEEN 25 AND 34
sex = ' Male' AND "income>50K" = ' >50K' AND age BETWEEN 35 AND 44
sex = ' Male' AND "income>50K" = ' >50K' AND age BETWEEN 45 AND 54
sex = ' Male' AND "income>50K" = ' >50K' AND age BETWEEN 55 AND 64
sex = ' Male' AND "income>50K" = ' >50K' AND age BETWEEN 65 AND 90

-- Full-time women and men without a degree, by age band
sex = ' Female' AND "education-num" < 13 AND "hours-per-week" >= 35 AND age BETWEEN 17 AND 24
sex = ' Female' AND "education-num" < 13 AND "hours-per-week" >= 35 AND age BETWEEN 25 AND 34
sex = ' Female' AND "education-num" < 13 AND "hours-per-week" >= 35 AND age BETWEEN 35 AND 44
sex = ' Female' AND "education-num" < 13 AND "hours-per-week" >= 35 AND age BETWEEN 45 AND 54
sex = ' Female' AND "education-num" < 13 AND "hours-per-week" >= 35 AND age BETWEEN 55 AND 64
sex = ' Female' AND "education-num" < 13 AND "hours-per-week" >= 35 AND age BETWEEN 65 AND 90
sex = ' Male' AND "education-num" < 13 AND "hours-per-week" >= 35 AND age BETWEEN 17 AND 24
sex = ' Male' AND "education-num" < 13 AND "hours-per-week" >= 35 AND age BETWEEN 25 AND 34
sex = ' Male' AND "education-num" < 13 AND "hours-per-week" >= 35 AND age BETWEEN 35 AND 44
sex = ' Male' AND "education-num" < 13 AND "hours-per-week" >= 35 AND age BETWEEN 45 AND 54
sex = ' Male' AND "education-num" < 13 AND "hours-per-week" >= 35 AND age BETWEEN 55 AND 64
sex = ' Male' AND "education-num" < 13 AND "hours-per-week" >= 35 AND age BETWEEN 65 AND 90

-- Graduates among high earners, by sector
workclass = ' Private' AND "education-num" >= 13 AND "income>50K" = ' >50K'
workclass = ' Self-emp-not-inc' AND "education-num" >= 13 AND "income>50K" = ' >50K'
workclass = ' Self-emp-inc' AND "education-num" >= 13 AND "income>50K" = ' >50K'
workclass = ' Federal-gov' AND "education-num" >= 13 AND "income>50K" = ' >50K'
workclass = ' Local-gov' AND "education-num" >= 13 AND "income>50K" = ' >50K'
workclass = ' State-gov' AND "education-num" >= 13 AND "income>50K" = ' >50K'

-- Long weeks by occupation, and what they earn
occupation = ' Tech-support' AND "hours-per-week" > 45 AND "income>50K" = ' >50K'
occupation = ' Craft-repair' AND "hours-per-week" > 45 AND "income>50K" = ' >50K'
occupation = ' Other-service' AND "hours-per-week" > 45 AND "income>50K" = ' >50K'
occupation = ' Sales' AND "hours-per-week" > 45 AND "income>50K" = ' >50K'
occupation = ' Exec-managerial' AND "hours-per-week" > 45 AND "income>50K" = ' >50K'
occupation = ' Prof-specialty' AND "hours-per-week" > 45 AND "income>50K" = ' >50K'
occupation = ' Handlers-cleaners' AND "hours-per-week" > 45 AND "income>50K" = ' >50K'
occupation = ' Machine-op-inspct' AND "hours-per-week" > 45 AND "income>50K" = ' >50K'
occupation = ' Adm-clerical' AND "hours-per-week" > 45 AND "income>50K" = ' >50K'
occupation = ' Farming-fishing' AND "hours-per-week" > 45 AND "income>50K" = ' >50K'
occupation = ' Transport-moving' AND "hours-per-week" > 45 AND "income>50K" = ' >50K'
occupation = ' Protective-serv' AND "hours-per-week" > 45 AND "income>50K" = ' >50K'

-- The same, of women
occupation = ' Tech-support' AND "hours-per-week" > 45 AND sex = ' Female'
occupation = ' Craft-repair' AND "hours-per-week" > 45 AND sex = ' Female'
occupation = ' Other-service' AND "hours-per-week" > 45 AND sex = ' Female'
occupation = ' Sales' AND "hours-per-week" > 45 AND sex = ' Female'
occupation = ' Exec-managerial' AND "hours-per-week" > 45 AND sex = ' Female'
occupation = ' Prof-specialty' AND "hours-per-week" > 45 AND sex = ' Female'
occupation = ' Handlers-cleaners' AND "hours-per-week" > 45 AND sex = ' Female'
occupation = ' Machine-op-inspct' AND "hours-per-week" > 45 AND sex = ' Female'
occupation = ' Adm-clerical' AND "hours-per-week" > 45 AND sex = ' Female'
occupation = ' Farming-fishing' AND "hours-per-week" > 45 AND sex = ' Female'
occupation = ' Transport-moving' AND "hours-per-week" > 45 AND sex = ' Female'
occupation = ' Protective-serv' AND "hours-per-week" > 45 AND sex = ' Female'

-- Part-time work by family role
relationship = ' Wife' AND "hours-per-week" < 30 AND age BETWEEN 25 AND 64
relationship = ' Own-child' AND "hours-per-week" < 30 AND age BETWEEN 25 AND 64
relationship = ' Husband' AND "hours-per-week" < 30 AND age BETWEEN 25 AND 64
relationship = ' Not-in-family' AND "hours-per-week" < 30 AND age BETWEEN 25 AND 64
relationship = ' Other-relative' AND "hours-per-week" < 30 AND age BETWEEN 25 AND 64
relationship = ' Unmarried' AND "hours-per-week" < 30 AND age BETWEEN 25 AND 64

-- Marital status of people under 30 and of pensioners
"marital-status" = ' Married-civ-spouse' AND age < 30 AND sex = ' Female'
"marital-status" = ' Divorced' AND age < 30 AND sex = ' Female'
"marital-status" = ' Never-married' AND age < 30 AND sex = ' Female'
"marital-status" = ' Separated' AND age < 30 AND sex = ' Female'
"marital-status" = ' Widowed' AND age < 30 AND sex = ' Female'
"marital-status" = ' Married-civ-spouse' AND age >= 65 AND sex = ' Male'
"marital-status" = ' Divorced' AND age >= 65 AND sex = ' Male'
"marital-status" = ' Never-married' AND age >= 65 AND sex = ' Male'
"marital-status" = ' Separated' AND age >= 65 AND sex = ' Male'
"marital-status" = ' Widowed' AND age >= 65 AND sex = ' Male'

-- Capital income
"capital-gain" > 5000 AND age BETWEEN 17 AND 24
"capital-gain" > 5000 AND age BETWEEN 25 AND 34
"capital-gain" > 5000 AND age BETWEEN 35 AND 44
"capital-gain" > 5000 AND age BETWEEN 45 AND 54
"capital-gain" > 5000 AND age BETWEEN 55 AND 64
"capital-gain" > 5000 AND age BETWEEN 65 AND 90
workclass = ' Private' AND "capital-gain" > 0 AND "income>50K" = ' >50K'
workclass = ' Self-emp-not-inc' AND "capital-gain" > 0 AND "income>50K" = ' >50K'
workclass = ' Self-emp-inc' AND "capital-gain" > 0 AND "income>50K" = ' >50K'
"capital-gain" > 0 AND "capital-loss" = 0 AND "income>50K" = ' >50K'
"capital-loss" > 1500 AND "income>50K" = ' >50K'
("capital-gain" > 10000 OR "capital-loss" > 2000) AND sex = ' Female'

-- Race, degree and income
race = ' White' AND "education-num" >= 13 AND "income>50K" = ' >50K'
race = ' White' AND "education-num" < 9 AND "hours-per-week" >= 40
race = ' White' AND "marital-status" = ' Never-married' AND age > 40
race = ' Black' AND "education-num" >= 13 AND "income>50K" = ' >50K'
race = ' Black' AND "education-num" < 9 AND "hours-per-week" >= 40
race = ' Black' AND "marital-status" = ' Never-married' AND age > 40
race = ' Asian-Pac-Islander' AND "education-num" >= 13 AND "income>50K" = ' >50K'
race = ' Asian-Pac-Islander' AND "education-num" < 9 AND "hours-per-week" >= 40
race = ' Asian-Pac-Islander' AND "marital-status" = ' Never-married' AND age > 40
race = ' Amer-Indian-Eskimo' AND "education-num" >= 13 AND "income>50K" = ' >50K'
race = ' Amer-Indian-Eskimo' AND "education-num" < 9 AND "hours-per-week" >= 40
race = ' Amer-Indian-Eskimo' AND "marital-status" = ' Never-married' AND age > 40
race = ' Other' AND "education-num" >= 13 AND "income>50K" = ' >50K'
race = ' Other' AND "education-num" < 9 AND "hours-per-week" >= 40
race = ' Other' AND "marital-status" = ' Never-married' AND age > 40

-- Born abroad
"native-country" <> ' United-States' AND sex = ' Female' AND "income>50K" = ' >50K'
"native-country" <> ' United-States' AND sex = ' Female' AND "education-num" >= 13
"native-country" <> ' United-States' AND sex = ' Female' AND "hours-per-week" > 50
"native-country" <> ' United-States' AND sex = ' Male' AND "income>50K" = ' >50K'
"native-country" <> ' United-States' AND sex = ' Male' AND "education-num" >= 13
"native-country" <> ' United-States' AND sex = ' Male' AND "hours-per-week" > 50
"native-country" = ' Mexico' AND age BETWEEN 25 AND 54 AND "hours-per-week" >= 35
"native-country" = ' Philippines' AND age BETWEEN 25 AND 54 AND "hours-per-week" >= 35
"native-country" = ' Germany' AND age BETWEEN 25 AND 54 AND "hours-per-week" >= 35
"native-country" = ' Canada' AND age BETWEEN 25 AND 54 AND "hours-per-week" >= 35
"native-country" = ' India' AND age BETWEEN 25 AND 54 AND "hours-per-week" >= 35

-- Over-qualified, under-paid
occupation = ' Tech-support' AND "education-num" >= 13 AND NOT "income>50K" = ' >50K'
occupation = ' Craft-repair' AND "education-num" >= 13 AND NOT "income>50K" = ' >50K'
occupation = ' Other-service' AND "education-num" >= 13 AND NOT "income>50K" = ' >50K'
occupation = ' Sales' AND "education-num" >= 13 AND NOT "income>50K" = ' >50K'
occupation = ' Exec-managerial' AND "education-num" >= 13 AND NOT "income>50K" = ' >50K'
occupation = ' Prof-specialty' AND "education-num" >= 13 AND NOT "income>50K" = ' >50K'
occupation = ' Handlers-cleaners' AND "education-num" >= 13 AND NOT "income>50K" = ' >50K'
occupation = ' Machine-op-inspct' AND "education-num" >= 13 AND NOT "income>50K" = ' >50K'
occupation = ' Adm-clerical' AND "education-num" >= 13 AND NOT "income>50K" = ' >50K'
occupation = ' Farming-fishing' AND "education-num" >= 13 AND NOT "income>50K" = ' >50K'
occupation = ' Transport-moving' AND "education-num" >= 13 AND NOT "income>50K" = ' >50K'
occupation = ' Protective-serv' AND "education-num" >= 13 AND NOT "income>50K" = ' >50K'

-- Young people in work and study
education = ' Some-college' AND age < 25 AND "hours-per-week" <= 20
education = ' Some-college' AND age < 25 AND "hours-per-week" > 20 AND relationship = ' Own-child'
education = ' HS-grad' AND age < 25 AND "hours-per-week" <= 20
education = ' HS-grad' AND age < 25 AND "hours-per-week" > 20 AND relationship = ' Own-child'
education = ' 11th' AND age < 25 AND "hours-per-week" <= 20
education = ' 11th' AND age < 25 AND "hours-per-week" > 20 AND relationship = ' Own-child'
education = ' Bachelors' AND age < 25 AND "hours-per-week" <= 20
education = ' Bachelors' AND age < 25 AND "hours-per-week" > 20 AND relationship = ' Own-child'

-- Work beyond retirement
workclass = ' Private' AND age >= 65 AND "hours-per-week" >= 30
workclass = ' Self-emp-not-inc' AND age >= 65 AND "hours-per-week" >= 30
workclass = ' Self-emp-inc' AND age >= 65 AND "hours-per-week" >= 30
workclass = ' Local-gov' AND age >= 65 AND "hours-per-week" >= 30

-- Couples
relationship IN (' Wife', ' Husband') AND "education-num" >= 9 AND "income>50K" = ' >50K' AND "hours-per-week" >= 40
relationship = ' Wife' AND "education-num" >= 9 AND "income>50K" = ' >50K'
relationship = ' Unmarried' AND "education-num" >= 9 AND NOT "income>50K" = ' >50K'
relationship IN (' Wife', ' Husband') AND "education-num" >= 13 AND "income>50K" = ' >50K' AND "hours-per-week" >= 40
relationship = ' Wife' AND "education-num" >= 13 AND "income>50K" = ' >50K'
relationship = ' Unmarried' AND "education-num" >= 13 AND NOT "income>50K" = ' >50K'
relationship IN (' Wife', ' Husband') AND "education-num" >= 14 AND "income>50K" = ' >50K' AND "hours-per-week" >= 40
relationship = ' Wife' AND "education-num" >= 14 AND "income>50K" = ' >50K'
relationship = ' Unmarried' AND "education-num" >= 14 AND NOT "income>50K" = ' >50K'

-- Unknown sector or occupation
workclass IS NULL AND age >= 60
workclass IS NULL AND age < 25
occupation IS NULL AND sex = ' Female' AND "hours-per-week" < 25
occupation IS NULL AND "education-num" >= 13

-- Hours against age and schooling
"hours-per-week" > 1 * "education-num" + 20 AND "income>50K" = ' >50K'
"hours-per-week" > 2 * "education-num" + 20 AND "income>50K" = ' >50K'
"hours-per-week" > 3 * "education-num" + 20 AND "income>50K" = ' >50K'
"hours-per-week" > age AND sex = ' Male'
"hours-per-week" > age AND sex = ' Female'
age - "education-num" > 40 AND "hours-per-week" >= 40

-- Sectors, by sex, of people in their prime
workclass = ' Private' AND sex = ' Female' AND age BETWEEN 30 AND 49
workclass = ' Private' AND sex = ' Male' AND age BETWEEN 30 AND 49
workclass = ' Self-emp-not-inc' AND sex = ' Female' AND age BETWEEN 30 AND 49
workclass = ' Self-emp-not-inc' AND sex = ' Male' AND age BETWEEN 30 AND 49
workclass = ' Self-emp-inc' AND sex = ' Female' AND age BETWEEN 30 AND 49
workclass = ' Self-emp-inc' AND sex = ' Male' AND age BETWEEN 30 AND 49
workclass = ' Federal-gov' AND sex = ' Female' AND age BETWEEN 30 AND 49
workclass = ' Federal-gov' AND sex = ' Male' AND age BETWEEN 30 AND 49
workclass = ' Local-gov' AND sex = ' Female' AND age BETWEEN 30 AND 49
workclass = ' Local-gov' AND sex = ' Male' AND age BETWEEN 30 AND 49
workclass = ' State-gov' AND sex = ' Female' AND age BETWEEN 30 AND 49
workclass = ' State-gov' AND sex = ' Male' AND age BETWEEN 30 AND 49

-- Older workers by occupation
occupation = ' Tech-support' AND age >= 50 AND "hours-per-week" >= 35
occupation = ' Craft-repair' AND age >= 50 AND "hours-per-week" >= 35
occupation = ' Other-service' AND age >= 50 AND "hours-per-week" >= 35
occupation = ' Sales' AND age >= 50 AND "hours-per-week" >= 35
occupation = ' Exec-managerial' AND age >= 50 AND "hours-per-week" >= 35
occupation = ' Prof-specialty' AND age >= 50 AND "hours-per-week" >= 35
occupation = ' Handlers-cleaners' AND age >= 50 AND "hours-per-week" >= 35
occupation = ' Machine-op-inspct' AND age >= 50 AND "hours-per-week" >= 35
occupation = ' Adm-clerical' AND age >= 50 AND "hours-per-week" >= 35
occupation = ' Farming-fishing' AND age >= 50 AND "hours-per-week" >= 35
occupation = ' Transport-moving' AND age >= 50 AND "hours-per-week" >= 35
occupation = ' Protective-serv' AND age >= 50 AND "hours-per-week" >= 35

-- Degrees and marriage
education = ' HS-grad' AND "marital-status" = ' Married-civ-spouse' AND sex = ' Female'
education = ' Some-college' AND "marital-status" = ' Married-civ-spouse' AND sex = ' Female'
education = ' Bachelors' AND "marital-status" = ' Married-civ-spouse' AND sex = ' Female'
education = ' Masters' AND "marital-status" = ' Married-civ-spouse' AND sex = ' Female'
education = ' Doctorate' AND "marital-status" = ' Married-civ-spouse' AND sex = ' Female'

-- Odds and ends that were asked for
education IN (' Masters', ' Doctorate', ' Prof-school') AND sex = ' Female' AND age < 40
education IN (' Masters', ' Doctorate', ' Prof-school') AND sex = ' Male' AND age < 40
workclass LIKE '%gov' AND "hours-per-week" > 40 AND age > 50
workclass LIKE ' Self%' AND NOT "income>50K" = ' >50K'
workclass LIKE ' Self%' AND "marital-status" = ' Divorced'
occupation IN (' Exec-managerial', ' Prof-specialty') AND race = ' Black'
occupation IN (' Exec-managerial', ' Prof-specialty') AND sex = ' Female' AND "income>50K" = ' >50K'
occupation IN (' Handlers-cleaners', ' Machine-op-inspct', ' Transport-moving') AND age > 50
occupation IN (' Handlers-cleaners', ' Machine-op-inspct', ' Transport-moving') AND sex = ' Female'
"marital-status" = ' Divorced' AND relationship = ' Unmarried' AND "hours-per-week" >= 40
"marital-status" = ' Widowed' AND age < 50
"marital-status" = ' Never-married' AND "income>50K" = ' >50K' AND age BETWEEN 30 AND 45
"hours-per-week" = 40 AND "income>50K" = ' >50K'
"hours-per-week" BETWEEN 1 AND 15 AND age BETWEEN 30 AND 60
education = ' HS-grad' AND "income>50K" = ' >50K' AND workclass = ' Private'
education = ' HS-grad' AND sex = ' Female' AND age > 55
education = ' Some-college' AND occupation = ' Adm-clerical' AND sex = ' Female'
age < 30 AND "income>50K" = ' >50K'
age < 30 AND "income>50K" = ' >50K' AND "education-num" < 13
age BETWEEN 40 AND 49 AND "hours-per-week" >= 60
