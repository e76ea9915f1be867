const DIGITS = `(${Array.from({ length: 10 }, (_, n) => `SELECT ${n} AS n`).join(' UNION ALL ')})`

/** SQL of a table with a column `seq` that counts from `first` to `last`; MariaDB's own sequences are unknown to MySQL. */
export function sequence(first: number, last: number): string {
  const places = Array.from(String(last - first), (_, place) => place)
  const offset = places.map((place) => `d${place}.n * ${10 ** place}`).join(' + ')
  const tables = places.map((place) => `${DIGITS} d${place}`).join(', ')
  return `(SELECT ${first} + ${offset} AS seq FROM ${tables} WHERE ${offset} <= ${last - first}) numbers`
}
