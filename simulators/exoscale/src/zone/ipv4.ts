/** Whether a text is a dotted IPv4 address. */
export function isIpv4(text: string): boolean {
  const parts = text.split('.')
  return parts.length === 4 && parts.every((part) => /^(0|[1-9][0-9]{0,2})$/.test(part) && Number(part) < 256)
}

/** The lowest address from `start` to `end` that is not taken. */
export function nextFreeIp(start: string, end: string, taken: ReadonlySet<string>): string | undefined {
  for (let number = numberOf(start); number <= numberOf(end); number++) {
    const address = addressOf(number)
    if (!taken.has(address)) return address
  }
  return undefined
}

function numberOf(address: string): number {
  return address.split('.').reduce((sum, part) => sum * 256 + Number(part), 0)
}

function addressOf(number: number): string {
  return [24, 16, 8, 0].map((shift) => Math.floor(number / 2 ** shift) % 256).join('.')
}
