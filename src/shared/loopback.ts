/** Whether a URL's host, or a listen address, is this machine itself, by its name or its address. */
export function isLoopbackHost(host: string): boolean {
  return ['localhost', '::1', '[::1]'].includes(host) || /^127(\.\d{1,3}){3}$/.test(host)
}

/** Whether the connection to this address is encrypted or, in development, stays on this machine. */
export function isHttpsOrOwn({ protocol, hostname }: URL, isDevelopment: boolean): boolean {
  return protocol === 'https:' || (isDevelopment && isLoopbackHost(hostname))
}
