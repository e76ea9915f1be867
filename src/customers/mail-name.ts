import type { Customer } from './store.ts'

/**
 * The name by which mails may address the customer; empty where an end user's client chose both name and address, and no token has
 * verified the address: the name would be a text to a stranger, under the seller's name.
 */
export function mailNameOf({
  name,
  endUser,
  emailVerified,
}: Pick<Customer, 'name' | 'endUser' | 'emailVerified'>): string {
  return endUser === null || emailVerified === true ? name : ''
}
