/** Whether a URL's host is this machine itself, by its name or its address. */
export function isLoopbackHost(hostname: string): boolean {
  return hostname === 'localhost' || hostname === '[::1]' || /^127(\.\d{1,3}){3}$/.test(hostname)
}

/** Whether what is sent to this address goes encrypted, or, in development, stays on this machine. */
export function isHttpsOrOwn({ protocol, hostname }: URL, isDevelopment: boolean): boolean {
  return protocol === 'https:' || (isDevelopment && isLoopbackHost(hostname))
}
