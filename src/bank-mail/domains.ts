/** Whether `domain` is `parent` or a subdomain of it, at a dot: `mail.timo.vn` is of `timo.vn`, `eviltimo.vn` is not. */
export function isWithin(domain: string, parent: string): boolean {
  return domain === parent || domain.endsWith(`.${parent}`)
}
