/** The text as a QR code in an SVG element that scales to any size, with the quiet zone that readers want. */
export async function qrSvg(payload: string): Promise<string> {
  const { default: QRCode } = await import('qrcode')
  return QRCode.toString(payload, { type: 'svg', errorCorrectionLevel: 'M', margin: 4 })
}

/** The same in a PNG picture of 720 pixels, which banking apps read from a phone's photos. */
export async function qrPng(payload: string): Promise<Buffer> {
  const { default: QRCode } = await import('qrcode')
  return QRCode.toBuffer(payload, { type: 'png', errorCorrectionLevel: 'M', margin: 4, width: 720 })
}
