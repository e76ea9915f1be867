import { AppError } from '#shared/errors.ts'

/** 502 `provider_error` because the provider did not answer at all: it will not answer for other apps either. */
export class ProviderUnreachable extends AppError {
  constructor(message: string) {
    super('provider_error', message)
  }
}
