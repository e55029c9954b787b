/** The syntax of keys and values of labels and taints. */

const namePart = /^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$/
const prefixPart = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/

/** Why the key of a label or taint is not a qualified name; undefined if it is one. */
export function qualifiedNameProblem(key: string): string | undefined {
  const slash = key.indexOf('/')
  const [prefix, name] = slash < 0 ? [undefined, key] : [key.slice(0, slash), key.slice(slash + 1)]
  if (prefix !== undefined && (prefix.length > 253 || !prefixPart.test(prefix))) {
    return `"${prefix}" is not a DNS subdomain of at most 253 characters`
  }
  if (name.length > 63 || !namePart.test(name)) {
    return `"${name}" must be 1 to 63 characters, letters, digits, "-", "_" and ".", alphanumeric at both ends`
  }
  return undefined
}

/** Whether the API server accepts it as a label value. */
export function isLabelValue(value: string): boolean {
  return value === '' || (value.length <= 63 && namePart.test(value))
}

/** Why the API server rejects a label value; undefined if it does not. */
export function labelValueProblem(value: string): string | undefined {
  if (isLabelValue(value)) return undefined
  return `value "${value}" must be at most 63 characters, letters, digits, "-", "_" and ".", alphanumeric at both ends`
}
