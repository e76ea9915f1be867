import { z } from 'zod'

/** The body of a PATCH: any of the fields, at least one of them (R29). */
export function patchOf<Shape extends z.ZodRawShape>(shape: Shape): z.ZodObject<Shape, z.core.$strict> {
  const names = Object.keys(shape).join(', ')
  return z
    .strictObject(shape)
    .refine(
      (fields) => Object.values(fields).some((value) => value !== undefined),
      `must contain at least one of ${names}`,
    )
}

/** The fields that were given, null included: an absent field stays as it is. `given<Row>` refuses what is no column of the row. */
export function given<Fields extends object>(fields: {
  readonly [Name in keyof Fields]?: Fields[Name] | undefined
}): Partial<Fields> {
  const entries = Object.entries(fields).filter(([, value]) => value !== undefined)
  return Object.fromEntries(entries) as Partial<Fields>
}
