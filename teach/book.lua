-- Makes one book of the lessons, for pandoc. Titles, "3. Never build J", get the id lesson-3;
-- links to a page of the book lead there, and those to other files to where these lie, seen from the
-- book: in the folder `lessons`, which the metadata names, or above it. Pictures become part of the
-- book; as images of their own, so that their styles do not meet.
local lessons

local function file_of(target)
    local folder, rest = lessons, target
    while rest:sub(1, 3) == "../" and folder:match("[^/.]+$") do
        folder, rest = folder:gsub("/?[^/]+$", ""), rest:sub(4)
    end
    return folder .. "/" .. rest
end

local function link(element)
    local number = element.target:match("^(%d+)_[%w_]*%.md$")
    if number then
        element.target = "#lesson-" .. tonumber(number)
    elseif element.target == "../ranks.md" then
        element.target = "#over-many-ranks"
    elseif not element.target:match("^%a+:") and not element.target:match("^#") then
        element.target = file_of(element.target)
    end
    return element
end

local function image(element)
    local file = assert(io.open("teach/" .. element.src))
    local svg = file:read("a"):gsub("[^%w%-./:;=,()@]", function(c)
        return ("%%%02X"):format(c:byte())
    end)
    file:close()
    element.src = "data:image/svg+xml," .. svg
    return element
end

local function header(element)
    local number = pandoc.utils.stringify(element):match("^(%d+)%. ")
    if element.level == 1 and number then
        element.identifier = "lesson-" .. number
    end
    return element
end

return {
    { Meta = function(meta) lessons = pandoc.utils.stringify(meta.lessons) end },
    { Link = link, Header = header, Image = image },
}
