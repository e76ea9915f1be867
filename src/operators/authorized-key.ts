import { invalidField } from '#shared/errors.ts'

/** One public key as OpenSSH writes it: its type, the key, and a comment. Options before the type would widen what it may do. */
const PUBLIC_KEY =
  /^(?:ssh-ed25519|ssh-rsa|ecdsa-sha2-nistp(?:256|384|521)|sk-ssh-ed25519@openssh\.com|sk-ecdsa-sha2-nistp256@openssh\.com) [A-Za-z0-9+/]{30,}={0,2}(?: [\x20-\x7e]{1,200})?$/

/** The public key in the text of a file. Throws `invalid_request` for a private key, several keys, or anything else. */
export function parsePublicKey(text: string): string {
  const key = text.trim()
  if (key.includes('PRIVATE KEY')) throw invalidField('ssh_key', 'is a private key: give the file that ends in .pub')
  if (!PUBLIC_KEY.test(key))
    throw invalidField('ssh_key', 'must hold one public key, such as: ssh-ed25519 AAAA… linh@laptop')
  return key
}

/**
 * The line of `authorized_keys` that lets the holder of the key run this one program, and nothing else (sshd(8)). Without a key
 * it is the line's beginning.
 */
export function authorizedKey(program: string, name: string, key: string | null): string {
  const options = `command="${program} as ${name}",restrict,pty`
  return key === null ? options : `${options} ${key}`
}
