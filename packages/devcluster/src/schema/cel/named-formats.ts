import { type Environment, Optional } from '@marcbachmann/cel-js'
import { urlError } from '@tenon/cel'
import { hasFormat } from '../crd/formats.ts'
import { labelValueErrors, nameErrors, type NameRule, qualifiedNameErrors } from '../validation/metadata.ts'

/** A named format in CEL. */
class CelFormat {
  readonly #errors: (text: string) => readonly string[]

  constructor(errors: (text: string) => readonly string[]) {
    this.#errors = errors
  }

  /** The problems of the text; absent if there are none. */
  validate(text: string): Optional<readonly string[]> {
    const errors = this.#errors(text)
    return errors.length === 0 ? Optional.none() : Optional.of(errors)
  }
}

/** Receiver of `format.named` and of the formats by name. */
class CelFormats {
  readonly name = 'format'
}

const named = (rule: NameRule) => new CelFormat((text) => nameErrors(text, rule))

/** A name prefix for generated names may end with a dash. */
const prefix = (rule: NameRule) => new CelFormat((text) => nameErrors(text.replace(/-$/, 'a'), rule))

const known = (format: string, words: string) =>
  new CelFormat((text) => (hasFormat(format, text) ? [] : [words]))

const formats: ReadonlyMap<string, CelFormat> = new Map([
  ['dns1123Label', named('label')],
  ['dns1123Subdomain', named('subdomain')],
  ['dns1035Label', named('label1035')],
  ['qualifiedName', new CelFormat(qualifiedNameErrors)],
  ['dns1123LabelPrefix', prefix('label')],
  ['dns1123SubdomainPrefix', prefix('subdomain')],
  ['dns1035LabelPrefix', prefix('label1035')],
  ['labelValue', new CelFormat(labelValueErrors)],
  [
    'uri',
    new CelFormat((text) => {
      const error = urlError(text)
      return error === undefined ? [] : [error]
    }),
  ],
  ['uuid', known('uuid', 'does not match the UUID format')],
  ['byte', known('byte', 'invalid base64')],
  ['date', known('date', 'invalid date')],
  ['datetime', known('date-time', 'invalid datetime')],
])

/** Formats by name. */
export function registerFormats(environment: Environment): void {
  const format = 'kubernetes.NamedFormat'
  const all = 'kubernetes.NamedFormats'
  environment
    .registerType(format, CelFormat)
    .registerType(all, CelFormats)
    .registerConstant('format', all, new CelFormats())
    .registerFunction(`${all}.named(string): optional<${format}>`, (_formats: CelFormats, name: string) => {
      const found = formats.get(name)
      return found === undefined ? Optional.none() : Optional.of(found)
    })
    .registerFunction(`${format}.validate(string): optional<list<string>>`, (one: CelFormat, text: string) =>
      one.validate(text),
    )
  for (const [name, one] of formats) environment.registerFunction(`${all}.${name}(): ${format}`, () => one)
}
