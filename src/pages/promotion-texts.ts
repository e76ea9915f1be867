import type { Locale } from '#shared/locale.ts'

/** The texts about promotions in one language. */
export interface PromotionTexts {
  readonly discount: (code: string, off: string, regular: string) => string
  readonly haveCode: string
  readonly code: string
  readonly apply: string
  readonly refused: string
  readonly renewUnpaid: string
  readonly nothingDue: string
}

const TEXTS: Readonly<Record<Locale, PromotionTexts>> = {
  en: {
    discount: (code, off, regular) => `You save ${off} with the code ${code}. Regular price: ${regular}.`,
    haveCode: 'I have a promotion code',
    code: 'Promotion code',
    apply: 'Apply',
    refused: 'This code cannot be used for this payment. You can pay without it.',
    renewUnpaid: 'Renew now',
    nothingDue: 'No payment is due.',
  },
  vi: {
    discount: (code, off, regular) => `Giảm ${off} nhờ mã ${code}. Giá gốc: ${regular}.`,
    haveCode: 'Tôi có mã khuyến mãi',
    code: 'Mã khuyến mãi',
    apply: 'Áp dụng',
    refused: 'Mã này không áp dụng được cho khoản thanh toán này. Bạn vẫn có thể thanh toán mà không dùng mã.',
    renewUnpaid: 'Gia hạn ngay',
    nothingDue: 'Bạn không cần thanh toán.',
  },
}

export function promotionTexts(locale: Locale): PromotionTexts {
  return TEXTS[locale]
}
