import type { FieldError } from '../contract.ts'

const prefixes: Readonly<Record<FieldError['kind'], string>> = {
  required: 'Required value',
  invalid: 'Invalid value',
  notSupported: 'Unsupported value',
  duplicate: 'Duplicate value',
  forbidden: 'Forbidden',
  tooLong: 'Too long',
  tooMany: 'Too many',
  typeInvalid: 'Invalid value',
  notFound: 'Not found',
}

const causeReasons: Readonly<Record<FieldError['kind'], string>> = {
  required: 'FieldValueRequired',
  invalid: 'FieldValueInvalid',
  notSupported: 'FieldValueNotSupported',
  duplicate: 'FieldValueDuplicate',
  forbidden: 'FieldValueForbidden',
  tooLong: 'FieldValueTooLong',
  tooMany: 'FieldValueTooMany',
  typeInvalid: 'FieldValueTypeInvalid',
  notFound: 'FieldValueNotFound',
}

const withoutValue: ReadonlySet<FieldError['kind']> = new Set(['required', 'forbidden', 'tooLong', 'tooMany'])

function errorBody(error: FieldError): string {
  const prefix = prefixes[error.kind]
  if (error.value === undefined || withoutValue.has(error.kind)) {
    return error.detail === '' ? prefix : `${prefix}: ${error.detail}`
  }
  const head = `${prefix}: ${shown(error.value)}`
  return error.detail === '' ? head : `${head}: ${error.detail}`
}

function shown(value: unknown): string {
  if (typeof value === 'number' || typeof value === 'boolean') return String(value)
  return JSON.stringify(value) ?? 'null'
}

function shownField({ field }: FieldError): string {
  return field === '' ? '<nil>' : field
}

/** `spec.replicas: Invalid value: -1: must be greater than or equal to 0`. */
export function fieldErrorText(error: FieldError): string {
  return `${shownField(error)}: ${errorBody(error)}`
}

/**
 * The message of a 422: `Deployment.apps "web" is invalid: spec.replicas: …`, in brackets for several errors. `kind`
 * includes its group (see {@link qualifiedKind}).
 */
export function fieldErrorsMessage(kind: string, name: string, errors: readonly FieldError[]): string {
  const texts = [...new Set(errors.map(fieldErrorText))]
  const list = texts.length === 1 ? texts[0] : `[${texts.join(', ')}]`
  return `${kind} ${JSON.stringify(name)} is invalid: ${list}`
}

/** The `details.causes` of a 422. */
export function fieldCauses(
  errors: readonly FieldError[],
): readonly { readonly reason: string; readonly message: string; readonly field: string }[] {
  return errors.map((error) => ({
    reason: causeReasons[error.kind],
    message: errorBody(error),
    field: shownField(error),
  }))
}
