<?php
// The connector for PHP 8, with the openssl and json extensions. docs/connector.md is its specification, and
// connectors/vectors.json its tests. Put it before everything else, or into `auto_prepend_file`:
//   require 'frontrow.php';
//   $visit = Frontrow\protect(['room' => 'https://room.example/v1/events/aurora/room', 'event' => 'aurora',
//                              'shop' => 'https://shop.example', 'open_paths' => ['/static/']]);
// It ends the script unless the request may go on. `$visit` has `person` and `visit`.
declare(strict_types=1);

namespace Frontrow;

const PLAIN = '#\A/[A-Za-z0-9._~!$&\'()*+,=:@/-]*\z#';
const PAGE = '#\A(/[A-Za-z0-9._~!$&\'()*+,;=:@%/-]*)(\?[!$-;=?-\[\]-~]*)?\z#';
const HIDDEN = '#%(?:[01].|2f|5c|7f)#i';
const TOKENS = '#([?&]frontrow=[A-Za-z0-9_-]*)+\z#';
const AHEAD_S = 60, PASS_COOKIE_S = 86400, BIND_COOKIE_S = 604800, KEPT_COOKIE_S = 30, FOLLOW_S = 2, TIMEOUT_S = 2.0;
const AWAY = '<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="2"><title>One moment</title><p>The waiting room does not answer. This page tries again by itself.';
const NOTHING = ['keys' => [], 'events' => [], 'ended' => [], 'mark' => ''];

function cookie_name(array $setup, string $kind): string
{
    $secure = str_starts_with($setup['shop'], 'https:');
    return $secure ? "__Host-frontrow-$kind-{$setup['event']}" : "frontrow_{$kind}_{$setup['event']}";
}

function cookie_line(array $setup, string $kind, string $value, int $life_s): string
{
    $secure = str_starts_with($setup['shop'], 'https:') ? '; Secure' : '';
    return cookie_name($setup, $kind) . "=$value; Path=/; Max-Age=$life_s; HttpOnly; SameSite=Lax$secure";
}

/** What to do with a request. `$target`: path and query as the client sent them; `$headers`: by lower-case name. */
function decide(array $setup, array $known, string $method, string $target, array $headers, int $now_s, string $fresh): array
{
    $path = explode('?', $target, 2)[0];
    if (is_open($setup, $path)) return ['action' => 'open'];
    $page = preg_replace(TOKENS, '', $target);
    $tokens = explode('=', substr($target, strlen($page)));
    $token = $method === 'GET' ? end($tokens) : '';
    $cookies = substr($headers['cookie'] ?? '', 0, 16384);
    $header = trim($headers['frontrow-pass'] ?? '', " \t");
    $given = $header !== '' ? $header : read_cookie($cookies, cookie_name($setup, 'pass'));
    [$claims, $code] = $given !== '' ? read_pass($setup, $known, $given, $now_s) : [[], 'pass_required'];
    if ($path === '/.frontrow/end' && $method === 'POST') {
        if (($headers['origin'] ?? '') !== $setup['shop'] && ($headers['sec-fetch-site'] ?? '') !== 'same-origin') {
            return ['action' => 'refuse', 'code' => 'cross_site'];
        }
        $gone = [cookie_line($setup, 'pass', '', 0), cookie_line($setup, 'kept', '', 0)];
        return ['action' => 'end', 'given' => $code === '' ? $given : '', 'cookies' => $gone];
    }
    if ($code === '') {
        if (strlen($page) < strlen($target) && $method === 'GET') return ['action' => 'strip', 'location' => wanted($page)];
        $due = $header === '' && ($claims['exp'] - $now_s) * 3 < $claims['exp'] - $claims['iat'];
        $renew = $due && read_cookie($cookies, cookie_name($setup, 'kept')) === '';
        return ['action' => 'pass', 'person' => $claims['sub'], 'visit' => visit_of($claims), 'given' => $given, 'renew' => $renew];
    }
    $verifier = read_cookie($cookies, cookie_name($setup, 'bind'));
    $verifier = preg_match('#\A[A-Za-z0-9_-]{43}\z#', $verifier) ? $verifier : '';
    if ($token !== '' && $verifier !== '') {
        return ['action' => 'exchange', 'code' => $code, 'token' => $token, 'verifier' => $verifier, 'page' => wanted($page)];
    }
    if (!in_array($method, ['GET', 'HEAD'], true) || !str_contains($headers['accept'] ?? '', 'text/html')) {
        return ['action' => 'refuse', 'code' => $code];
    }
    return to_room($setup, $page, $verifier, $fresh, $code);
}

/** To the room, and back to `$page` afterwards. A browser without a verifier gets `$fresh`. */
function to_room(array $setup, string $page, string $verifier, string $fresh, string $code): array
{
    $bind = b64(hash('sha256', $verifier ?: $fresh, true));
    $location = "{$setup['room']}/?bind=$bind&return=" . rawurlencode($setup['shop'] . wanted($page));
    $cookies = $verifier !== '' ? [] : [cookie_line($setup, 'bind', $fresh, BIND_COOKIE_S)];
    return ['action' => 'room', 'code' => $code, 'location' => $location, 'cookies' => $cookies];
}

/** The page to lead to: never another site, whatever was in the address. */
function wanted(string $page): string
{
    $path = explode('?', $page, 2)[0];
    return is_page($page) ? $page : (is_page($path) ? $path : '/');
}

function is_open(array $setup, string $path): bool
{
    if (!preg_match(PLAIN, $path) || str_contains($path, '//') || array_intersect(['.', '..'], explode('/', $path))) {
        return false;
    }
    foreach ($setup['open_paths'] ?? [] as $one) {
        if ($path === $one || (str_ends_with($one, '/') && str_starts_with($path, $one))) {
            return true;
        }
    }
    return false;
}

function is_page(string $text): bool
{
    return strlen($text) <= 1024 && preg_match(PAGE, $text, $found)
        && !str_contains($found[1], '//') && !preg_match(HIDDEN, $found[1]) && !array_intersect(['.', '..'], explode('/', $found[1]));
}

function read_cookie(string $header, string $name): string
{
    foreach (explode(';', $header) as $part) {
        [$key, $value] = explode('=', trim($part, " \t"), 2) + [1 => ''];
        if ($key === $name && $value !== '') {
            return $value;
        }
    }
    return '';
}

function visit_of(array $claims): string
{
    return implode('.', [$claims['aud'], ...$claims['plc']]);
}

/** The claims of a pass, and why it is refused (nothing if it is good). */
function read_pass(array $setup, array $known, string $text, int $now_s): array
{
    $claims = verified($known, $text);
    if (is_string($claims)) return [[], $claims];
    if ($claims['shop'] !== $setup['shop'] || !in_array($claims['aud'], [$setup['event'], ...$known['events']], true)) {
        return [[], 'pass_foreign'];
    }
    if ($now_s >= $claims['exp'] || $claims['iat'] > $now_s + AHEAD_S) return [[], 'pass_expired'];
    return isset($known['ended'][visit_of($claims)]) ? [[], 'pass_ended'] : [$claims, ''];
}

/** The claims, if the room signed them; else the code of the refusal. */
function verified(array $known, string $text): array|string
{
    $parts = strlen($text) <= 4096 ? explode('.', $text) : [];
    [$head, $body, $signature] = array_map(unb64(...), $parts) + ['', '', ''];
    $header = json_decode($head, true);
    if (count($parts) !== 3 || $head === '' || $signature === '' || !is_array($header) || count($header) !== 3
        || ($header['alg'] ?? 0) !== 'RS256' || ($header['typ'] ?? 0) !== 'JWT' || !isset($header['kid'])) {
        return 'pass_invalid';
    }
    $pem = $known['keys'][is_string($header['kid']) ? $header['kid'] : ''] ?? '';
    if ($pem === '') return 'key_unknown';
    if (openssl_verify("$parts[0].$parts[1]", $signature, $pem, OPENSSL_ALGO_SHA256) !== 1) {
        return 'pass_invalid';
    }
    $claims = json_decode($body);
    $claims = is_object($claims) ? (array) $claims : []; // a list within it stays an array, an object an object
    $place = $claims['plc'] ?? null;
    if (!is_array($place) || count($place) !== 3 || ($claims['iss'] ?? 0) !== 'frontrow-room') {
        return 'pass_invalid';
    }
    $numbers = array_filter([$claims['exp'] ?? null, $claims['iat'] ?? null, ...$place], is_int(...));
    $texts = array_filter([$claims['aud'] ?? null, $claims['sub'] ?? null, $claims['shop'] ?? null], is_string(...));
    return count($numbers) === 5 && count($texts) === 3 ? $claims : 'pass_invalid';
}

function b64(string $raw): string
{
    return rtrim(strtr(base64_encode($raw), '+/', '-_'), '=');
}

/** The bytes of base64url without padding, in its only spelling; nothing otherwise. */
function unb64(string $text): string
{
    $raw = preg_match('#\A[A-Za-z0-9_-]+\z#', $text) ? (string) base64_decode(strtr($text, '-_', '+/'), true) : '';
    return b64($raw) === $text ? $raw : '';
}

/** An RSA key of the room as PEM, which openssl reads. */
function pem_of(array $key): string
{
    $length = fn (int $size): string => $size < 128 ? chr($size) : ($size < 256 ? "\x81" . chr($size) : "\x82" . pack('n', $size));
    $der = fn (int $tag, string $body): string => chr($tag) . $length(strlen($body)) . $body;
    $number = fn (string $name): string => $der(2, "\0" . unb64($key[$name]));
    $numbers = $der(0x30, $number('n') . $der(2, unb64($key['e'])));
    $whole = $der(0x30, hex2bin('300d06092a864886f70d0101010500') . $der(3, "\0" . $numbers));
    return "-----BEGIN PUBLIC KEY-----\n" . chunk_split(base64_encode($whole), 64, "\n") . "-----END PUBLIC KEY-----\n";
}

/** What is known after another `connector` document of the room. */
function learn(array $known, array $told): array
{
    $before = $known['mark'] !== '' && $told['after'] === $known['mark'] ? $known['ended'] : [];
    $ended = array_filter($before, fn (int $until_s): bool => $until_s > $told['now_s']);
    foreach ($told['ended'] as $entry) {
        $at = strrpos($entry, ':');
        $ended[substr($entry, 0, $at)] = (int) substr($entry, $at + 1);
    }
    $keys = array_combine(array_column($told['keys'], 'kid'), array_map(pem_of(...), $told['keys']));
    return ['keys' => $keys, 'events' => $told['events'], 'ended' => $ended, 'mark' => $told['mark']];
}

/** Status and JSON of a call to the room; status 0 if it does not answer. */
function call_room(string $url, ?string $body, array $headers = []): array
{
    $http = ['timeout' => TIMEOUT_S, 'ignore_errors' => true, 'follow_location' => 0, 'header' => $headers];
    $http += $body === null ? [] : ['method' => 'POST', 'content' => $body];
    $text = @file_get_contents($url, false, stream_context_create(['http' => $http]), 0, 4194304);
    $status = $text === false ? 0 : (int) explode(' ', $http_response_header[0])[1];
    $told = json_decode((string) $text, true);
    if ($status === 0 || !is_array($told)) {
        error_log("frontrow: the waiting room at $url does not answer");
        return [0, []];
    }
    return [$status, $told];
}

/** What the room said last, from a file that all processes share; asked again when it is older than `$max_age_s`. One
 *  process asks, the others go on with what they have. */
function follow(array $setup, float $max_age_s): array
{
    $name = 'frontrow-' . hash('sha256', json_encode([$setup, __FILE__, get_current_user()])) . '.json';
    $path = ($setup['folder'] ?? sys_get_temp_dir()) . "/$name";
    $old_mask = umask(0077);
    $file = is_link($path) ? false : @fopen($path, 'c+');
    umask($old_mask);
    if ($file === false || (function_exists('posix_geteuid') && fstat($file)['uid'] !== posix_geteuid())) {
        throw new \RuntimeException("frontrow: $path must be a file of this user; set 'folder' to a folder that only the shop may write");
    }
    $kept = json_decode((string) file_get_contents($path), true) ?? ['at' => 0, 'known' => NOTHING];
    $age_s = microtime(true) - $kept['at'];
    $has_keys = (bool) $kept['known']['keys'];
    if ($age_s >= 0 && $age_s < ($has_keys ? $max_age_s : 0.5) || !flock($file, $has_keys ? LOCK_EX | LOCK_NB : LOCK_EX)) {
        return $kept['known'];
    }
    $kept = json_decode((string) file_get_contents($path), true) ?? $kept; // another process has asked meanwhile, perhaps
    if (microtime(true) - $kept['at'] >= $max_age_s || $age_s < 0) {
        [$status, $told] = call_room("{$setup['room']}/connector?after=" . rawurlencode($kept['known']['mark']), null);
        $known = $status === 200 ? learn($kept['known'], $told) : $kept['known'];
        $kept = ['at' => $status === 200 && !$told['complete'] ? 0 : microtime(true), 'known' => $known];
        file_put_contents("$path.new", json_encode($kept));
        rename("$path.new", $path);
    }
    fclose($file);
    return $kept['known'];
}

/** `decide`, carried out: the action is then pass, open, strip, room, refuse, end or away. */
function handle(array $setup, string $method, string $target, array $headers): array
{
    $fresh = b64(random_bytes(32));
    $look = fn (array $known): array => decide($setup, $known, $method, $target, $headers, time(), $fresh);
    $done = $look($known = follow($setup, FOLLOW_S));
    if (($done['code'] ?? '') === 'key_unknown') { // a new key, perhaps
        $done = $look($known = follow($setup, 0.5));
    }
    if ($done['action'] === 'exchange') {
        $form = http_build_query(['token' => $done['token'], 'verifier' => $done['verifier']]);
        [$status, $told] = call_room("{$setup['room']}/exchange", $form, ['Content-Type: application/x-www-form-urlencoded']);
        $cookies = [cookie_line($setup, 'pass', $told['pass'] ?? '', PASS_COOKIE_S)];
        if ($status === 200) {
            return ['action' => 'strip', 'location' => $done['page'], 'cookies' => $cookies];
        }
        return $status === 0 || $status >= 500 ? ['action' => 'away'] : to_room($setup, $done['page'], $done['verifier'], '', 'pass_required');
    }
    if ($done['action'] === 'end' && $done['given'] !== '') {
        call_room("{$setup['room']}/give-back", '', ["Frontrow-Pass: {$done['given']}"]);
    }
    if (($done['code'] ?? '') === 'key_unknown' && !$known['keys']) {
        return ['action' => 'away'];
    }
    if ($done['renew'] ?? false) {
        [$status, $told] = call_room("{$setup['room']}/renew", '', ["Frontrow-Pass: {$done['given']}"]);
        $done['cookies'] = [$status === 200 ? cookie_line($setup, 'pass', $told['pass'], PASS_COOKIE_S) : cookie_line($setup, 'kept', '1', KEPT_COOKIE_S)];
    }
    return $done;
}

/** Let only visitors go on; everybody else is answered here. */
function protect(array $setup): array
{
    $names = ['accept', 'cookie', 'frontrow-pass', 'origin', 'sec-fetch-site'];
    $headers = array_combine($names, array_map(fn ($name) => $_SERVER['HTTP_' . strtoupper(strtr($name, '-', '_'))] ?? '', $names));
    $done = handle($setup, $_SERVER['REQUEST_METHOD'], $_SERVER['REQUEST_URI'], $headers);
    foreach ($done['cookies'] ?? [] as $line) {
        header("Set-Cookie: $line", false);
    }
    if (in_array($done['action'], ['pass', 'open'], true)) {
        return ['person' => $done['person'] ?? '', 'visit' => $done['visit'] ?? ''];
    }
    header('Cache-Control: no-store');
    header('Referrer-Policy: no-referrer');
    match ($done['action']) {
        'strip', 'room' => header("Location: {$done['location']}", true, 303),
        'end' => http_response_code(204),
        'away' => [http_response_code(503), header('Retry-After: 2'), print AWAY],
        'refuse' => refuse($done['code'], $setup),
    };
    exit;
}

function refuse(string $code, array $setup): void
{
    http_response_code($status = in_array($code, ['cross_site', 'pass_foreign'], true) ? 403 : 401);
    header('Content-Type: application/problem+json');
    $title = ucfirst(strtr($code, '_', ' '));
    echo json_encode(['type' => "urn:frontrow:$code", 'title' => $title, 'status' => $status, 'code' => $code, 'room' => "{$setup['room']}/"]);
}
