/** `insufficient_capacity` as reasons are written: `InsufficientCapacity`. */
export function upperCamel(text: string): string {
  return text
    .split(/[_\s-]+/)
    .map((word) => word.charAt(0).toUpperCase() + word.slice(1))
    .join('')
}
