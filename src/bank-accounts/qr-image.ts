/** The text as a QR code in an SVG element that scales to any size, with the quiet zone that readers want. */
export async function qrSvg(payload: string): Promise<string> {
  const { default: QRCode } = await import('qrcode')
  return QRCode.toString(payload, { type: 'svg', errorCorrectionLevel: 'M', margin: 4 })
}
