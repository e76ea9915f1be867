/** Whether `domain` equals `parent` or is one of its subdomains: `mail.timo.vn` belongs to `timo.vn`, `eviltimo.vn` does not. */
export function isWithin(domain: string, parent: string): boolean {
  return domain === parent || domain.endsWith(`.${parent}`)
}
