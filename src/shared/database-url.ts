/**
 * Splits `mysql://user:password@h1:3306,h2:3306/database?…` into one address for each host, in this order. Hosts begin after the last
 * `@`, so that user and password may hold commas.
 */
export function addressesOf(url: string): string[] {
  const start = url.indexOf('//') + 2
  const length = url.slice(start).search(/[/?#]/)
  const end = length === -1 ? url.length : start + length
  const hostsStart = Math.max(start, url.lastIndexOf('@', end - 1) + 1)
  return url
    .slice(hostsStart, end)
    .split(',')
    .map((host) => url.slice(0, hostsStart) + host + url.slice(end))
}
