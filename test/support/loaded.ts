/** Whether a file of this process has loaded `database.ts`. */
export const loaded = { database: false }
