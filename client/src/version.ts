/** Major and minor version of this package, for the `User-Agent` of its calls. */
export const VERSION = '0.2'
