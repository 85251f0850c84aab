/**
 * The functions of keytar that are used here. The package is optional, and its own types are missing where it did not
 * install, so the type check never reads them.
 */
declare module 'keytar' {
  export interface Keytar {
    getPassword(service: string, account: string): Promise<string | null>
    setPassword(service: string, account: string, password: string): Promise<void>
    deletePassword(service: string, account: string): Promise<boolean>
    findCredentials(service: string): Promise<{ account: string; password: string }[]>
  }
  const keytar: Keytar
  export default keytar
}
