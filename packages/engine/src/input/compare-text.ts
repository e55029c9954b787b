/** Orders texts by code unit; an absent text counts as empty. */
export function compareText(a: string | undefined, b: string | undefined): number {
  return (a ?? '') < (b ?? '') ? -1 : (a ?? '') > (b ?? '') ? 1 : 0
}
